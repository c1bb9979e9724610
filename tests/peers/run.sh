#!/usr/bin/env bash
# Measures mote beside its peers on the 4B shape and on the default model, and writes targets/bench/peers.{md,json}.
# MOTE, VENV, LARGE (folder of the 4B bundle and its GGUF twins) and CACHE come from the Makefile; IK_LLAMA_DIR is the source
# tree of ik_llama.cpp, without which that one is left out. SHAPES, ROUNDS and THREADS make it shorter.
set -euo pipefail

rounds=${ROUNDS:-3}
read -r -a threads <<< "${THREADS:-1 2}"
raw=${RAW:-$CACHE/peers.jsonl}
python=$VENV/bin/python

if [[ -n "${IK_LLAMA_DIR:-}" ]]; then
	build=$CACHE/ik-build
	if [[ ! -x $build/bin/llama-bench ]]; then
		echo "building llama-bench of ik_llama.cpp, which takes minutes"
		PATH="$VENV/bin:$PATH" cmake -G Ninja -S "$IK_LLAMA_DIR" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
			-DBUILD_SHARED_LIBS=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=OFF > "$CACHE/ik-build.log"
		PATH="$VENV/bin:$PATH" ninja -C "$build" llama-bench >> "$CACHE/ik-build.log" 2>&1
	fi
	IK_LLAMA_BENCH=$build/bin/llama-bench
	IK_LLAMA_VERSION=$(git -C "$IK_LLAMA_DIR" log -1 --format='%h of %cs' 2> /dev/null || echo unknown)
	export IK_LLAMA_BENCH IK_LLAMA_VERSION
fi

measure() {
	"$python" tests/peers/compare.py measure "$raw" --mote "$MOTE" --threads "${threads[@]}" --rounds "$rounds" "$@"
}

for shape in ${SHAPES:-135M 4B}; do
	case $shape in
	135M)
		gguf=$(find "$MOTE_HOME/cache" -name '*.gguf' -print -quit)
		other=$CACHE/default-q4_0.gguf
		[[ -e $other ]] || "$python" tests/peers/requantize.py "$gguf" "$other" q4_0 2> /dev/null
		measure --shape 135M --bundle "$MOTE_HOME/bundles/$(< "$MOTE_HOME/bundles/default")" --gguf "Q4_1=$gguf" --gguf "Q4_0=$other"
		;;
	4B)
		measure --shape 4B --bundle "$LARGE/bundle" --gguf "Q4_0=$LARGE/q4_0.gguf" --gguf "Q4_K_M=$LARGE/q4_k_m.gguf"
		;;
	esac
done
"$python" tests/peers/compare.py report "$raw" --markdown targets/bench/peers.md --json targets/bench/peers.json \
	--note "mote $(git log -1 --format="%h of %cs" 2> /dev/null || echo of an unknown commit)."
