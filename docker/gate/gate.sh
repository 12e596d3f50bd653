#!/bin/sh
# The state of a version in one word: pass, fail or inconclusive. gate.sh MODEL VERSION [ENVIRONMENT]
set -eu
answer=$(curl --silent --show-error --fail --max-time 20 --get "$COMPILEWATCH_URL/api/v1/gate" \
  --header "Authorization: Bearer $COMPILEWATCH_API_KEY" \
  --data-urlencode "model=$1" --data-urlencode "version=$2" --data-urlencode "environment=${3:-production}")
printf '%s\n' "$answer" | jq --raw-output .state
