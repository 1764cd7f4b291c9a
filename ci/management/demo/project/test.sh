#!/usr/bin/env bash
# Usage: test.sh LANGUAGE
set -euo pipefail

language=${1:?which language?}
green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
failures=0

check() {
  sleep 0.5 # long enough to see the lines arrive
  if [[ $2 == *"$3"* ]]; then
    echo "  ${green}passed${plain}  $1"
  else
    echo "  ${red}failed${plain}  $1: '$3' is not in '$2'"
    failures=$((failures + 1))
  fi
}

echo "Testing $language"
for name in Ada Grace Linus; do
  check "greets $name" "$(./greet.sh "$language" "$name")" "$name"
done
check "greets the world by default" "$(./greet.sh "$language")" "world"

exit $((failures > 0))
