#!/usr/bin/env bash
# Usage: greet.sh LANGUAGE NAME
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
file="$here/greetings/${1:?which language?}.txt"

if [[ ! -f $file ]]; then
  echo "No greeting in $1; there is: $(cd "$here/greetings" && echo *.txt)" >&2
  exit 1
fi

sed "s/{name}/${2:-world}/" "$file"
