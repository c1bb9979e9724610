//! What a machine really allocates for its programs, against their limit in bytes.
//!
//! The bound is the limit and [`HEADER_BYTES`]: what the allocator hands out between the start of a program and its end,
//! above what the host's tools take, which the machine copies. Memory that the host allocates, compiled programs and results
//! among it, is marked as not counted, wherever it is freed; half of a program's code, which the machine charges, is set
//! against the limit where that tells, for random programs. What an allocator adds to a block is not seen here.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "differential/expressions.rs"]
mod expressions;
#[path = "differential/generate.rs"]
mod generate;

use mote_script::{Kind, Limits, Program, Signature, Step, Vm, compile};
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// One value's header.
const HEADER_BYTES: usize = 48;

thread_local! {
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

/// Counts what is allocated while [`COUNTING`], until it is freed. The bytes before each block say whether it is counted.
struct Counting;

/// A layout with a mark before it, and where the block begins.
fn marked(layout: Layout) -> (Layout, usize) {
    let mark = Layout::new::<usize>();
    let (whole, at) = mark.extend(layout).unwrap_or((layout, 0));
    (whole.pad_to_align(), at)
}

// SAFETY: every block comes from the system's allocator with the layout of `marked`, and goes back with the same; the part
// behind the mark is aligned and sized as asked. Counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (whole, at) = marked(layout);
        let counted = COUNTING.get();
        // SAFETY: `whole` is not empty, since it holds the mark.
        let start = unsafe { System.alloc(whole) };
        if start.is_null() {
            return start;
        }
        // SAFETY: the block has `at` bytes before the part that is handed out, and those of the mark lie in them.
        let place = unsafe { start.add(at) };
        // SAFETY: as above; the place may be unaligned for the mark.
        unsafe { place.sub(size_of::<usize>()).cast::<usize>().write_unaligned(usize::from(counted)) };
        if counted {
            HELD.set(HELD.get() + layout.size());
            MOST.set(MOST.get().max(HELD.get()));
        }
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let (whole, at) = marked(layout);
        // SAFETY: `alloc` wrote the mark there.
        let counted = unsafe { place.sub(size_of::<usize>()).cast::<usize>().read_unaligned() };
        if counted == 1 {
            HELD.set(HELD.get() - layout.size());
        }
        // SAFETY: the block began `at` bytes before, and has this layout.
        unsafe { System.dealloc(place.sub(at), whole) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs what the machine does.
fn counted<T>(run: impl FnOnce() -> T) -> T {
    COUNTING.set(true);
    let result = run();
    COUNTING.set(false);
    result
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
    "x = json.loads('{' + '\"a\": {}, ' * 3000 + '\"b\": []}')\n",
    "x = json.loads('[' + '{\"a\": 1}, ' * 3000 + '1]')\n",
    "x = json.loads('\"' + '\\\\n' * 30000 + '\"')\n",
    "x = json.dumps({str(i): 'ab\\n' * 20 for i in range(500)}, sort_keys=True, indent=8)\n",
    "z = t.get(k=[{'a': 1} for i in range(100000)])\n",
    "z = t.get(k=[{} for i in range(3000)])\n",
    "z = t.get(k={str(i): [[]] for i in range(100000)})\n",
    "x = 'ß' * 5000\ny = x.upper() + x.title() + x.lower() + x.swapcase() + x.capitalize()\n",
    "x = 'İ' * 5000\ny = x.lower()\n",
    "x = 'a\\t' * 5000\ny = x.expandtabs(64)\n",
    "x = 'é' * 9000\ny = [x[::2], x[1:], x[::-1], x[3:-3]] * 3\n",
    "x = '{}' * 5000\ny = x.format(*range(5000))\n",
    "x = '%s' * 3000\ny = x % tuple(range(3000))\n",
    "x = '{:{}}' * 500\ny = x.format(*[900] * 1000)\n",
    "x = f'{1:09999,}' + f'{1.5:.9999f}' + f'{2:>9999}' + f'{3.25:_>9999.9000e}'\n",
    "d = {}\nwhile True:\n    d[len(d)] = 1\n    if len(d) > 100:\n        d.popitem()\n        d.pop(5, None)\n",
    "d = {i: i for i in range(1000)}\nfor i in range(1000):\n    del d[i]\n    d[-i] = i\nwhile d:\n    d.popitem()\nx = [0] * 100000\n",
    "x = list(range(2000))\nwhile x:\n    x.pop()\n    x.pop(0)\ny = 'a' * 10000000\n",
    "x = int('9' * 100000)\n",
    "x = float('9' * 100000)\n",
    "x = 'a' * 100000\ny = [].index(x)\n",
    "x = {'k' * 5000 + str(i): 1 for i in range(30)}\ny = x['z']\n",
    "x = [{('k' * 30 + str(i) + str(j)): {str(m): [1] for m in range(12)} for j in range(12)} for i in range(12)]\nlen(5)\nx.nothing\n",
    "def f(a, b=1, *c, **d):\n    return f(*c, a, b, **d)\nf(*range(3000), **{str(i): i for i in range(200)})\n",
    "x = sorted([str(i) for i in range(3000)], key=lambda s: s * 3)\nx.sort(key=len, reverse=True)\n",
    "def f(n):\n    try:\n        try:\n            return f(n + 1)\n        finally:\n            n = 1\n    except ValueError:\n        pass\nf(0)\n",
    "x = [1]\nx = x + [x, x] * 20\nprint(x, str(x) * 3)\n",
    "x = getattr({}, 'a' * 100000, None)\ny = getattr([], 'b' * 100000)\n",
    "'{0.' + 'a' * 9000 + '}'\nx = ('{0.' + 'a' * 9000 + '}').format(1)\n",
    "a, *b = range(100000)\n*a, b = [0] * 3000\n(a, b), *c = 'abcd', *['x'] * 2000\n",
    "x = {*range(3000)} | {*range(5000)} ^ {*range(100)}\ny = x - {1} & x\n",
];

fn tools() -> Vec<Signature> {
    let schema = json!({"type": "object", "properties": {"k": {}}});
    vec![Signature::from_json_schema("t", "get", "", &schema).unwrap()]
}

fn compiled(source: &str) -> Program {
    compile(source, &Limits::default()).unwrap()
}

/// Runs programs one after another over the same variables, and says what was the most ever held.
fn most_held(sources: &[&str], bytes: u64) -> usize {
    let tools = tools();
    let result: Value = (0..60).map(|i| json!({"name": format!("file {i}"), "size": i})).collect();
    let limits = Limits { bytes, fuel: 400_000, ..Limits::default() };
    assert_eq!(HELD.get(), 0);
    counted(|| Vm::new(limits).start(compiled(""), &tools));
    let mut vm = counted(|| Vm::new(limits));
    let before = vm.usage().bytes;
    assert_eq!(counted(|| vm.start(compiled(""), &tools)), Step::Done);
    let own = usize::try_from(vm.usage().bytes - before).unwrap();
    let of_the_host = HELD.get() - own;
    MOST.set(0);
    for source in sources {
        let program = compiled(source);
        let mut step = counted(|| vm.start(program, &tools));
        loop {
            step = match step {
                Step::Call(call) => {
                    drop(call);
                    let result = Ok(result.clone());
                    counted(|| vm.resume(result))
                }
                Step::Calls(calls) => {
                    let results = calls.iter().map(|_| Ok(Value::Null)).collect();
                    drop(calls);
                    counted(|| vm.resume_all(results))
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
    MOST.get().saturating_sub(of_the_host)
}

fn check<S: AsRef<str>>(programs: impl Iterator<Item = Vec<S>>, bytes: u64) {
    let limit = usize::try_from(bytes).unwrap();
    let mut faults = Vec::new();
    let (mut n, mut n_full) = (0, 0);
    for sources in programs {
        let sources: Vec<&str> = sources.iter().map(AsRef::as_ref).collect();
        let most = most_held(&sources, bytes);
        n += 1;
        n_full += usize::from(most > limit / 2);
        if most > limit + HEADER_BYTES {
            faults.push(format!("{most} of {bytes}: {}", sources.join("---\n")));
        }
    }
    assert!(n_full * 4 > n, "of {n} runs under {bytes} bytes too few took more than half: {n_full}");
    assert!(faults.is_empty(), "{} of {n}\n{}", faults.len(), faults[..faults.len().min(8)].join("\n"));
}

#[test]
fn no_program_takes_more_than_its_limit() {
    for bytes in [20_000, 60_000, 200_000, 1_000_000] {
        check(HUNGRY.iter().map(|source| vec![*source]), bytes);
    }
}

#[test]
fn no_program_after_another_takes_more_than_its_limit() {
    check(HUNGRY.iter().flat_map(|first| HUNGRY.iter().map(|then| vec![*first, *then])), 200_000);
}

/// What a compiled program takes.
fn weight(source: &str) -> usize {
    let program = counted(|| compiled(source));
    let held = HELD.get();
    drop(program);
    held
}

#[test]
fn no_random_program_takes_more_than_its_limit() {
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let (mut n_stopped, mut tightest) = (0, 0);
    for _ in 0..400 {
        let source = generate::program(&mut rng);
        let code = weight(&source) / 2;
        let needed = most_held(&[&source], 1_000_000);
        for share in [50, 70, 80, 90, 95, 100] {
            let limit = (needed + 2 * code) * share / 100 + 8_192;
            let most = most_held(&[&source], limit as u64);
            n_stopped += usize::from(most < needed);
            tightest = tightest.max((most + code) * 100 / limit);
            assert!(most + code <= limit + HEADER_BYTES, "{most} and {code} of code, of {limit}:\n{source}");
        }
    }
    eprintln!("{n_stopped} of 2400 runs stopped by their limit, the tightest at {tightest}% of it");
    assert!(n_stopped > 400, "the limits stop too few programs: {n_stopped}");
}
