#!/usr/bin/env bash
# Builds (once) Helm, which renders the chart of scripts/kubernetes, and prints its path, where kubernetes-chart.test.js
# looks for it. Six minutes of a core.
exec "$(dirname "$0")/go-program.sh" helm helm.sh/helm/v3/cmd/helm v3.19.5 "${DSC_TEST_HELM:-}"
