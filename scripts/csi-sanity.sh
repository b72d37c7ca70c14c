#!/usr/bin/env bash
# Builds (once) csi-sanity, the conformance test of the Container Storage Interface, and prints its path, where
# csi.test.js looks for it. Needs Go 1.25.
package=github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity
exec "$(dirname "$0")/go-program.sh" csi-sanity "$package" v5.6.0 "${DSC_TEST_CSI_SANITY:-}"
