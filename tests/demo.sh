#!/usr/bin/env bash
# The tasks of the README through the real model: `make demo` calls it with MOTE and MCP_VENV set.
# It prints what happens, right or wrong; a failed task does not end it, and is counted.
set -uo pipefail
: "${MOTE:?the binary}" "${MCP_VENV:?the folder of the MCP servers}"

servers=$(mktemp)
trap 'rm -f "$servers"' EXIT
printf '{"mcpServers": {"time": {"command": "%s", "reads": ["get_current_time", "convert_time"]}}}\n' "$MCP_VENV/bin/mcp-server-time" >"$servers"

n_tasks=0
n_ended=0
ask() {
  local task=$1
  shift
  n_tasks=$((n_tasks + 1))
  echo
  echo "$ mote run $* \"$task\""
  "$MOTE" run "$@" -- "$task" && n_ended=$((n_ended + 1))
}

ask "How much disk space is free on /?"
ask "List the files in the folder ./toolpacks"
ask "What time is it in Tokyo?"
ask "What time is it in Tokyo?" --mcp "$servers"
ask "Which line of README.md mentions make test?"
ask "What is 17.5% of 2480?"
ask "What are the three largest files under ./agent, with their sizes?"

echo
echo "$n_ended of $n_tasks tasks ended with status complete; whether an answer is right is for the reader to see"
