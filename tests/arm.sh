#!/usr/bin/env bash
# The shared suite of the kernels as ARM programs, under qemu's emulation of several CPUs: every backend that a CPU has, and
# no instruction that it lacks. Installs nothing; speed under emulation means nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# CPU, then the backends it must find, the fastest first.
aarch64=(
  "cortex-a53 neon scalar"
  "cortex-a72 neon scalar"
  "cortex-a76 dotprod neon scalar"
  "max i8mm dotprod neon scalar"
)
armv7=(
  "cortex-a7 neon scalar"
  "cortex-a15,neon=off scalar"
  "cortex-a9 scalar"
  "max neon scalar"
)

missing() {
  echo "make test-arm needs $1" >&2
  echo "hint: $2" >&2
  exit 78
}

debian="apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static"
for tool in aarch64-linux-gnu-gcc arm-linux-gnueabihf-gcc qemu-aarch64-static qemu-arm-static; do
  command -v "$tool" >/dev/null || missing "$tool" "$debian"
done

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
export CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUSTFLAGS="-C target-feature=+crt-static"

# suite TARGET EMULATOR "CPU BACKENDS"...
suite() {
  local target=$1 emulator=$2 runner cpu backends
  shift 2
  [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || missing "the Rust target $target" "rustup target add $target"
  runner="CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")_RUNNER"
  for line in "$@"; do
    read -r cpu backends <<<"$line"
    echo "== $target on $cpu: $backends"
    env "$runner=$emulator -cpu $cpu" MOTE_TEST_KERNELS="$backends" \
      "${CARGO:-cargo}" test --release --quiet --package mote-kernels --lib --target "$target"
  done
}

suite aarch64-unknown-linux-gnu qemu-aarch64-static "${aarch64[@]}"
suite armv7-unknown-linux-gnueabihf qemu-arm-static "${armv7[@]}"
