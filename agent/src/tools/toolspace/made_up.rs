//! Toolspaces of any size out of nothing: plants full of machines, each a server with tools to read, set and log what it has.
//!
//! The same numbers give the same toolspace. Its purposes have nothing to do with those of the public ones, so that it can stand beside
//! them as what is *not* wanted; its schemas have what schemas have: types, choices, defaults, lists, and arguments that are required.

use serde_json::{Map, Value, json};

use super::Tool;

const MACHINES: [&str; 32] = [
    "boiler",
    "pump",
    "conveyor",
    "kiln",
    "turbine",
    "silo",
    "crane",
    "furnace",
    "compressor",
    "chiller",
    "dryer",
    "mixer",
    "lathe",
    "extruder",
    "centrifuge",
    "digester",
    "transformer",
    "rectifier",
    "switchgear",
    "hoist",
    "winch",
    "dredger",
    "harvester",
    "sprayer",
    "baler",
    "planter",
    "forklift",
    "palletizer",
    "sorter",
    "crusher",
    "bottler",
    "autoclave",
];

const ASPECTS: [&str; 40] = [
    "inlet pressure",
    "rotor vibration",
    "bearing wear",
    "oil level",
    "coolant flow",
    "filter clogging",
    "shaft torque",
    "belt tension",
    "valve position",
    "nozzle angle",
    "winding resistance",
    "flue draught",
    "feed rate",
    "blade pitch",
    "clutch slip",
    "gasket leakage",
    "lubricant viscosity",
    "sump level",
    "brake lining",
    "hopper load",
    "burner flame",
    "phase imbalance",
    "insulation drop",
    "spindle runout",
    "weld seam",
    "tooth backlash",
    "rope elongation",
    "damper stroke",
    "seal purge",
    "slurry density",
    "drum tilt",
    "chute blockage",
    "manifold skew",
    "relay bounce",
    "louvre gap",
    "impeller clearance",
    "casing strain",
    "bobbin count",
    "mould cavity",
    "anode depletion",
];

const DEEDS: [(&str, &str); 24] = [
    ("read", "Reads"),
    ("set", "Sets"),
    ("log", "Logs"),
    ("calibrate", "Calibrates"),
    ("trim", "Trims"),
    ("probe", "Probes"),
    ("damp", "Damps"),
    ("purge", "Purges"),
    ("inspect", "Inspects"),
    ("zero", "Zeroes"),
    ("limit", "Limits"),
    ("ramp", "Ramps"),
    ("balance", "Balances"),
    ("interlock", "Interlocks"),
    ("prime", "Primes"),
    ("sample", "Samples"),
    ("dose", "Doses"),
    ("latch", "Latches"),
    ("gauge", "Gauges"),
    ("throttle", "Throttles"),
    ("flush", "Flushes"),
    ("align", "Aligns"),
    ("derate", "Derates"),
    ("commission", "Commissions"),
];

const MANNERS: [&str; 12] = [
    "over the fieldbus",
    "with hysteresis",
    "for the shift foreman",
    "as the vendor manual prescribes",
    "while the line idles",
    "between two maintenance windows",
    "against the nameplate rating",
    "in the redundant loop",
    "per commissioning sheet",
    "with the guard closed",
    "through the local gateway",
    "under partial load",
];

/// `n_tools` tools, shared evenly among `n_servers` servers.
pub(super) fn tools(n_servers: usize, n_tools: usize) -> Vec<Tool> {
    (0..n_tools).map(|idx| tool(idx % n_servers.max(1), idx / n_servers.max(1))).collect()
}

/// A server's next tool. Steps that share no factor with the lists' lengths bring every pair of deed and aspect before one comes again.
fn tool(server: usize, nth: usize) -> Tool {
    let machine = MACHINES[server % MACHINES.len()];
    let aspect = ASPECTS[(server * 7 + nth * 3) % ASPECTS.len()];
    let (deed, does) = DEEDS[(server * 5 + nth + nth / ASPECTS.len()) % DEEDS.len()];
    let manner = MANNERS[(server + nth * 5) % MANNERS.len()];
    let mut properties = Map::new();
    properties.insert(
        "unit".into(),
        json!({"type": "string", "description": format!("tag of the {machine}, such as 'A-{nth:02}'")}),
    );
    let optional = [
        (
            "channel",
            json!({"type": "integer", "minimum": 0, "maximum": 63, "default": 0, "description": "which transducer"}),
        ),
        ("scale", json!({"type": "string", "enum": ["raw", "percent", "engineering"], "default": "engineering"})),
        ("setpoint", json!({"type": "number", "description": format!("wanted {aspect}")})),
        ("phases", json!({"type": "array", "items": {"type": "string", "enum": ["l1", "l2", "l3"]}})),
        ("dry_run", json!({"type": "boolean", "default": true})),
    ];
    for (name, schema) in optional.into_iter().cycle().skip(nth % 5).take(nth % 4) {
        properties.insert(name.into(), schema);
    }
    Tool {
        server: format!("{machine}-{}", server / MACHINES.len() + 1),
        tool: format!("{deed}_{}_{nth}", aspect.replace(' ', "_")),
        description: format!("{does} the {aspect} of a {machine} {manner}."),
        parameters: json!({"type": "object", "required": ["unit"], "properties": Value::Object(properties)}),
    }
}
