//! `system`: a simulated machine, a bare one, and this one.

use crate::fixture::Fixture;
use expect_test::expect;

pub(crate) const MACHINE: &[(&str, &str)] = &[
    (
        "proc/meminfo",
        "MemTotal:        4000000 kB\nMemFree:          500000 kB\nMemAvailable:    2500000 kB\nBuffers: 1 kB\nCached: 1 kB\nSwapCached: 0 kB\nActive: 1 kB\nInactive: 1 kB\nSwapTotal: 1000 kB\nSwapFree: 400 kB\nDirty: 0 kB\nWriteback: 0 kB\nMapped: 0 kB\nSlab: 0 kB\nCommitted_AS: 0 kB\nVmallocTotal: 0 kB\nVmallocUsed: 0 kB\nVmallocChunk: 0 kB\nPageTables: 0 kB\nSReclaimable: 0 kB\nSUnreclaim: 0 kB\nAnonPages: 0 kB\n",
    ),
    ("proc/self/mounts", "proc /proc proc rw 0 0\n/dev/mmcblk0p2 / ext4 rw 0 0\n/dev/mmcblk0p2 /again ext4 rw 0 0\n"),
    ("proc/loadavg", "0.50 0.40 0.30 1/93 512\n"),
    ("proc/uptime", "273600.50 1000000.00\n"),
    ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Test CPU\n\nprocessor\t: 1\nmodel name\t: Test CPU\n"),
    ("proc/sys/kernel/hostname", "board\n"),
    ("proc/sys/kernel/osrelease", "6.12.0\n"),
    ("etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"),
    (
        "proc/net/dev",
        "Inter-|   Receive\n face |bytes\n    lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n  eth0: 52000000 9 0 0 0 0 0 0 3100000 9 0 0 0 0 0 0\n",
    ),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/address", "dc:a6:32:00:00:01\n"),
    ("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n"),
    ("sys/class/thermal/thermal_zone0/temp", "48512\n"),
    ("sys/class/thermal/thermal_zone1/temp", "-274000\n"),
    ("sys/class/hwmon/hwmon0/name", "nvme\n"),
    ("sys/class/hwmon/hwmon0/temp1_input", "39850\n"),
    ("sys/class/hwmon/hwmon0/temp1_label", "Composite\n"),
    (
        "proc/512/stat",
        "512 (ss) hd) S 1 512 512 0 -1 4194560 0 0 0 0 7 3 0 0 20 0 1 0 100 0 2000 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
    ),
    ("proc/513/stat", "garbage"),
    ("var/log/syslog", "one\ntwo usb\nthree\n"),
    ("dev/kmsg", "6,1,5140900,-;usb 1-1: new device\n SUBSYSTEM=usb\n6,2,6000001,-;eth0: link up\n"),
];

#[test]
fn reads_a_simulated_machine() {
    let calls = [
        ("system.memory", "{}"),
        ("system.load", "{}"),
        ("system.info", "{}"),
        ("system.network", "{}"),
        ("system.temperature", "{}"),
        ("system.processes", "{}"),
        ("system.processes", r#"{"name": "zebra"}"#),
        ("system.processes", r#"{"sort": "size"}"#),
        ("system.journal", r#"{"lines": 2}"#),
        ("system.journal", r#"{"contains": "USB"}"#),
        ("system.journal", r#"{"source": "kernel"}"#),
        ("system.journal", r#"{"source": "kernel", "contains": "link"}"#),
        ("system.disk", r#"{"path": "nowhere"}"#),
    ];
    let said = Fixture::machine(MACHINE).transcript(&calls);
    expect![[r#"
        system.memory {}
          2.6 GB of 4.1 GB memory are available
        system.load {}
          load 0.5, 0.4, 0.3 on 2 CPUs
        system.info {}
          board: Debian GNU/Linux 13 (trixie), Linux 6.12.0, ARCH, 2 CPUs (Test CPU)
        system.network {}
          eth0: up, no address, received 52.0 MB, sent 3.1 MB
          lo: unknown, no address, received 10 bytes, sent 10 bytes
        system.temperature {}
          cpu-thermal: 48.5 °C
          nvme Composite: 39.9 °C
        system.processes {}
          ss) hd (512): 8.2 MB, 0.0% CPU
        system.processes {"name": "zebra"}
          no running process has a name with zebra
        system.processes {"sort": "size"}
          error: system.processes(sort) cannot be: "size"
          hint: one of: "memory", "cpu", "name", "pid"
        system.journal {"lines": 2}
          two usb
          three
        system.journal {"contains": "USB"}
          two usb
        system.journal {"source": "kernel"}
          [    5.140900] usb 1-1: new device
          [    6.000001] eth0: link up
        system.journal {"source": "kernel", "contains": "link"}
          [    6.000001] eth0: link up
        system.disk {"path": "nowhere"}
          error: no such file or folder: nowhere
          hint: list the folder first with fs.list(path=..)
    "#]]
    .assert_eq(&said.replace(std::env::consts::ARCH, "ARCH"));
    let disks = Fixture::machine(MACHINE).call("system.disks", "{}").unwrap();
    assert_eq!((&disks["count"], &disks["disks"][0]["device"]), (&1.into(), &"/dev/mmcblk0p2".into()));
    let uptime = Fixture::machine(MACHINE).call("system.uptime", "{}").unwrap();
    assert_eq!(uptime["uptime"], "3 days 4 hours");
}

#[test]
fn says_what_a_bare_machine_lacks() {
    let calls = [
        ("system.memory", "{}"),
        ("system.load", "{}"),
        ("system.uptime", "{}"),
        ("system.network", "{}"),
        ("system.temperature", "{}"),
        ("system.processes", "{}"),
        ("system.disks", "{}"),
        ("system.journal", "{}"),
    ];
    let mut said = Fixture::machine(&[]).transcript(&calls);
    said += &Fixture::machine(&[("var/log/journal/x/system.journal", "LPKSHHRH")]).transcript(&calls[7..]);
    said += &Fixture::machine(&[("proc/meminfo", "MemTotal: many kB"), ("proc/loadavg", "")]).transcript(&calls[..2]);
    expect![[r#"
        system.memory {}
          error: this machine does not have: /proc/meminfo
        system.load {}
          error: this machine does not have: /proc/loadavg
        system.uptime {}
          error: this machine does not have: /proc/uptime
        system.network {}
          error: this machine does not have: /proc/net/dev
        system.temperature {}
          error: this machine shows no temperature sensor
        system.processes {}
          error: this machine does not have: /proc
        system.disks {}
          no disk is mounted here; ask with system.disk(path="/")
        system.journal {}
          error: this machine has no log that can be read
        system.journal {}
          error: this machine has no log that can be read
          hint: the binary journal in /var/log/journal cannot be read; let journald forward to syslog (ForwardToSyslog=yes)
        system.memory {}
          error: unknown form of: /proc/meminfo
        system.load {}
          error: unknown form of: /proc/loadavg
    "#]].assert_eq(&said);
}

#[test]
fn agrees_with_df_on_this_machine() {
    let result = Fixture::new().call("system.disk", "{}").unwrap();
    let bytes = |name: &str| result[name].as_u64().unwrap();
    assert_eq!(result["path"], "/");
    assert!(bytes("total_bytes") >= bytes("used_bytes") && bytes("total_bytes") >= bytes("free_bytes"));
    let text = result["text"].as_str().unwrap();
    assert!(text.starts_with(result["free"].as_str().unwrap()) && text.contains("are free on /, "), "{text}");
}

#[test]
fn sees_this_process() {
    let result = Fixture::new().call("system.processes", r#"{"limit": 10000}"#).unwrap();
    let own = u64::from(std::process::id());
    let found = result["processes"].as_array().unwrap().iter().any(|process| process["pid"] == own);
    assert!(found || result["truncated"] == true);
}
