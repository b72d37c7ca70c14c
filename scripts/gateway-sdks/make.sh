#!/usr/bin/env bash
# Builds (once) clients of the gateway that test:gateway runs, and prints the command that starts one: make.sh
# go|java|javascript. They lie outside the checkout (DSC_TEST_GATEWAY_SDKS, or the user's cache folder), by the content of
# their sources. Exits with 77, and says what is missing, where there is no Go, or no JDK with Maven.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
language="$1"
need() { command -v "$1" >/dev/null || { echo "no $1" >&2; exit 77; }; }
case "$language" in
  go) need go ;;
  java) need javac; need mvn ;;
  javascript) need npm ;;
esac
content="$(cd "$here" && cat make.sh "$language"/* | sha256sum | cut -c1-16)"
made="${DSC_TEST_GATEWAY_SDKS:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/gateway-sdks}/$language-$content"
mkdir -p "$made"
exec 9>"$made/.lock"
flock 9
if [ ! -e "$made/.complete" ]; then
  cp "$here/$language"/* "$made"
  cd "$made"
  case "$language" in
    go) CGO_ENABLED=0 GOFLAGS=-trimpath nice go build -ldflags='-s -w' -o clients . >&2 ;;
    java)
      nice mvn -q -C dependency:copy-dependencies -DoutputDirectory=jars >&2
      nice javac -proc:none -d classes -cp 'jars/*' ./*.java >&2
      ;;
    javascript) nice npm install --silent --ignore-scripts --no-audit --no-fund >&2 ;;
  esac
  touch .complete
fi
case "$language" in
  go) echo "$made/clients" ;;
  java) echo "java -XX:TieredStopAtLevel=1 -Xmx512m -cp $made/classes:$made/jars/* Clients" ;;
  javascript) echo "node $made/clients.mjs" ;;
esac
