#!/usr/bin/env bash
# The shared suite of the kernels under qemu's emulation of x86-64 CPUs: each finds exactly the backends whose instructions it
# has, and one that met another would stop with SIGILL. qemu emulates no AVX-512 and no AVX-VNNI: a CPU that has them runs
# these backends in the ordinary tests. Installs nothing; speed under emulation means nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# CPU, then the backends it must find, the fastest first.
cpus=(
  "Conroe scalar"
  "Nehalem scalar"
  "SandyBridge scalar"
  "Haswell avx2 scalar"
  "EPYC-Milan avx2 scalar"
  "Skylake-Server avx2 scalar"
  "max avx2 scalar"
)

if ! command -v qemu-x86_64-static >/dev/null; then
  echo "make test-cpus needs qemu-x86_64-static" >&2
  echo "hint: apt-get install qemu-user-static" >&2
  exit 78
fi

for line in "${cpus[@]}"; do
  read -r cpu backends <<<"$line"
  echo "== x86_64 on $cpu: $backends"
  env CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64-static -cpu $cpu" MOTE_TEST_KERNELS="$backends" \
    "${CARGO:-cargo}" test --release --quiet --package mote-kernels --lib
done
