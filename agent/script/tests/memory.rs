//! What a machine really allocates, against its limit in bytes.
//!
//! The limit is on values as the VM counts them; the allocator sees besides them the room that vectors keep, and what an
//! instruction works on before its result is stored. The bound is `limit` times [`MOST_TIMES`] and [`SLACK_BYTES`].

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use mote_script::{Kind, Limits, Signature, Step, Vm, compile};
use serde_json::{Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// A value under construction stands beside the values it is made of.
const MOST_TIMES: usize = 2;
/// The compiled program, stack, tools and error texts.
const SLACK_BYTES: usize = 64 << 10;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn took(bytes: usize) {
    let held = HELD.get().saturating_add(bytes);
    HELD.set(held);
    MOST.set(MOST.get().max(held));
}

// SAFETY: every call is handed to the system's allocator with the layout it came with; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get().saturating_sub(layout.size()));
        // SAFETY: the place came from `System` with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were held above those at the start, and what `run` gave.
fn measured<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get();
    MOST.set(before);
    let result = run();
    (MOST.get() - before, result)
}

const HUNGRY: &[&str] = &[
    "x = 'a' * 100000000\n",
    "x = [0] * 100000000\n",
    "x = 'ab'\nwhile True:\n    x += x\n",
    "x = [1]\nwhile True:\n    x += x\n",
    "x = []\nwhile True:\n    x.append(x)\n",
    "x = []\nwhile True:\n    x.append('text')\n",
    "x = []\nwhile True:\n    x = [x, x]\n",
    "d = {}\ni = 0\nwhile True:\n    d[i] = i\n    i += 1\n",
    "d = {}\ni = 0\nwhile True:\n    d[str(i)] = [i]\n    i += 1\n",
    "s = set()\nfor i in range(10000000):\n    s.add((i, i))\n",
    "x = list(range(100000000))\n",
    "x = [i for i in range(100000000)]\n",
    "x = {i: str(i) for i in range(100000000)}\n",
    "x = sorted(range(100000000), reverse=True)\n",
    "x = tuple(range(100000000)) + tuple(range(100000000))\n",
    "x = f\"{1:>100000000}\"\n",
    "x = '{:>100000000}'.format(1)\n",
    "x = '%100000000d' % 1\n",
    "x = 'x'.center(100000000)\n",
    "x = 'x'.ljust(100000000) + 'x'.zfill(100000000)\n",
    "x = 'a' * 100000\ny = x.replace('a', x)\n",
    "x = 'a' * 1000\ny = x.replace('', x)\n",
    "x = 'a' * 1000\ny = x.join(list(x))\n",
    "x = 'a ' * 60000\ny = x.split()\n",
    "x = 'a\\n' * 60000\ny = x.splitlines()\n",
    "x = 'a,' * 60000\ny = x.split(',')\n",
    "x = 'a,' * 60000\ny = x.rsplit(',')\n",
    "x = 'a,' * 60000\ny = x.rsplit()\n",
    "x = 'a b ' * 60000\ny = x.rsplit()\n",
    "x = 'a' * 100000\ny = list(x)\n",
    "x = 'a' * 100000\ny = repr(repr(repr('\\\\\\'' * 20000)))\n",
    "x = 'é' * 50000\ny = json.dumps([x, x, x, x])\n",
    "x = '[' + '1,' * 60000 + '1]'\ny = json.loads(x)\n",
    "x = '{\"a\": [' + '[],' * 30000 + '1]}'\ny = json.loads(x)\n",
    "x = list(range(2000))\ny = str([x] * 100)\n",
    "x = list(range(2000))\ny = list(zip(x, x, x, x, x, x, x, x))\nz = [y] * 1000\n",
    "x = list(range(6000))\ny = list(map(lambda v: [v, v, v], x))\n",
    "x = ['ab'] * 5000\nprint(x)\n",
    "x = 'ab' * 90000\nprint(x, x, x)\n",
    "def f(*a, **k):\n    return f(*a, *a, **k)\nf(1, 2, 3, k=1)\n",
    "def f(n):\n    x = [n] * 100\n    return f(n + 1)\nf(0)\n",
    "x = [[1, 2, 3]] * 5000\ny = [v for row in x for v in row]\nz = sorted(x, key=lambda row: row[0])\n",
    "x = list(range(8000))\nx[0:0] = x\nx[0:0] = x\nx[0:0] = x\n",
    "x = list(range(5000))\na = [x[i:] for i in range(5000)]\n",
    "x = 'a' * 50000\na = [x[i:] for i in range(50000)]\n",
    "try:\n    raise ValueError('a' * 150000)\nexcept ValueError as e:\n    x = [str(e), str(e)]\n",
    "x = []\nwhile True:\n    try:\n        raise ValueError('a')\n    except ValueError as e:\n        x.append(e)\n",
    "x = t.get()\ny = [x, t.get(), t.get(), t.get(), t.get()]\n",
    "x = t.get()\nz = t.get(k=[x] * 20)\n",
    "x = 'a' * 150000\nz = t.get(k=x)\n",
    "x = 'a' * 150000\nz = gather(t.get(k=x), t.get(k=x), t.get(k=x), t.get(k=x))\n",
    "z = []\nwhile True:\n    z.append(gather(*[t.get(k=z) for i in range(16)]))\n",
    "x = 'a' * 90000\ny = x.upper()\nz = x.lower().title().strip()\n",
    "x = ('a' * 30 + ',') * 5000\ny = x.partition(',')\nz = x.split(',')\n",
    "x = dict(zip(range(1000), range(1000)))\ny = [dict(x) for i in range(1000)]\n",
    "x = set(range(1000))\ny = [x | {i} for i in range(100000)]\n",
    "x = [lambda: i for i in range(100000)]\n",
    "x = [range(i) for i in range(100000)]\n",
    "x = list('abc' * 20000)\ny = ''.join(x)\nz = x + x\n",
    "x = [''.join(['ab'] * i) for i in range(100000)]\n",
];

/// Runs programs one after another over the same variables, and says what was the most ever held.
fn most_held(sources: &[&str], bytes: u64) -> usize {
    let schema = json!({"type": "object", "properties": {"k": {}}});
    let tools = vec![Signature::from_json_schema("t", "get", "", &schema).unwrap()];
    let result: Value = (0..60).map(|i| json!({"name": format!("file {i}"), "size": i})).collect();
    let limits = Limits { bytes, fuel: 400_000, ..Limits::default() };
    let (most, ()) = measured(|| {
        let mut vm = Vm::new(limits);
        for source in sources {
            let mut step = vm.start(compile(source, &limits).unwrap(), &tools);
            loop {
                step = match step {
                    Step::Call(_) => vm.resume(Ok(result.clone())),
                    Step::Calls(calls) => {
                        let n = calls.len();
                        drop(calls);
                        vm.resume_all(vec![Ok(Value::Null); n])
                    }
                    _ => break,
                };
            }
            assert!(vm.usage().bytes <= bytes && vm.usage().fuel <= limits.fuel, "{source}{:?}", vm.usage());
            if let Step::Failed(error) = &step
                && error.kind() != Kind::Limit
            {
                assert!(error.exception().is_some(), "{source}{error}");
            }
        }
    });
    most
}

fn check(programs: impl Iterator<Item = Vec<&'static str>>, bytes: u64) {
    let mut faults = Vec::new();
    let mut worst = (0, String::new());
    for sources in programs {
        let most = most_held(&sources, bytes);
        if most > worst.0 {
            worst = (most, sources.join("---\n"));
        }
        if most > usize::try_from(bytes).unwrap() * MOST_TIMES + SLACK_BYTES {
            faults.push(format!("{most} of {bytes}: {}", sources.join("---\n")));
        }
    }
    assert!(worst.0 > 0, "nothing was held by {}", worst.1);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_program_takes_more_than_its_limit() {
    check(HUNGRY.iter().map(|source| vec![*source]), 1_000_000);
    check(HUNGRY.iter().map(|source| vec![*source]), 20_000);
}

#[test]
fn no_program_after_another_takes_more_than_its_limit() {
    check(HUNGRY.iter().flat_map(|first| HUNGRY.iter().map(|then| vec![*first, *then])), 200_000);
}
