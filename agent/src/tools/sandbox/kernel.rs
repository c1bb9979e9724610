//! Landlock and seccomp themselves.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::{Confinement, Sockets};

/// The Landlock version that bounds everything that can be done to a file, cutting it off included.
const FILES: ABI = ABI::V3;

/// Confines this thread, and all that it will start, for ever.
///
/// # Errors
/// Where the kernel lacks something and the confinement is strict, and where what it has cannot be set up.
pub(crate) fn confine_this_thread(confinement: &Confinement) -> Result<(), String> {
    match files(confinement) {
        Ok(status) if confinement.strict && status.ruleset == RulesetStatus::NotEnforced => {
            return Err("files cannot be confined: the kernel has no landlock".to_owned());
        }
        // A container that forbids the call has no landlock for us; `lacking` has said so.
        Err(RulesetError::CreateRuleset(_)) if !confinement.strict => {}
        Err(error) => {
            let error = error.to_string();
            let why = error.split_once(": BitFlags").map_or(error.as_str(), |(why, _)| why);
            return Err(format!("files cannot be confined: {why}"));
        }
        Ok(_) => {}
    }
    match calls::deny(confinement.sockets, confinement.programs) {
        Err(why) if confinement.strict => Err(format!("system calls cannot be confined: {why}")),
        _ => Ok(()),
    }
}

fn files(confinement: &Confinement) -> Result<RestrictionStatus, RulesetError> {
    let level = if confinement.strict { CompatLevel::HardRequirement } else { CompatLevel::BestEffort };
    let mut read = AccessFs::from_read(FILES);
    if !confinement.programs {
        read.remove(AccessFs::Execute);
    }
    let mut ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(FILES))?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(ABI::V6))?;
    if confinement.sockets != Sockets::Any {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    ruleset
        .create()?
        .add_rules(path_beneath_rules(&confinement.read, read))?
        .add_rules(path_beneath_rules(&confinement.write, read | AccessFs::from_write(FILES)))?
        .restrict_self()
}

/// Tries what the kernel has on this thread, and says what it lacks.
pub(super) fn lacking() -> Vec<String> {
    let all = Confinement {
        read: vec!["/".into()],
        write: Vec::new(),
        sockets: Sockets::None,
        programs: false,
        strict: false,
    };
    let mut lacking = Vec::new();
    match files(&all).map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, .. }) if effective_abi >= FILES => {}
        Ok(LandlockStatus::Available { effective_abi, .. }) => lacking.push(format!(
            "its landlock is too old, files can be cut off and renamed: needed {}, found {}",
            FILES as i32, effective_abi as i32
        )),
        Ok(LandlockStatus::NotEnabled) => {
            lacking.push("landlock is switched off in this kernel, files are not confined".to_owned());
        }
        Ok(_) => lacking.push("this kernel has no landlock, files are not confined".to_owned()),
        Err(error) => lacking.push(format!("files are not confined: {error}")),
    }
    if let Err(why) = calls::deny(Sockets::None, false) {
        lacking.push(format!("sockets and system calls are not confined: {why}"));
    }
    lacking
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod calls {
    use std::collections::BTreeMap;

    use libc::c_long;
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };

    use super::Sockets;

    /// What no tool needs: it reaches into other processes, into the kernel, around the file system or around this very filter.
    const NEVER: [c_long; 31] = [
        libc::SYS_io_uring_setup,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_pivot_root,
        libc::SYS_setns,
        libc::SYS_open_by_handle_at,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_quotactl,
    ];

    /// The bit that marks a call of the x32 ABI, which a filter by number would not know.
    #[cfg(target_arch = "x86_64")]
    const OTHER_ABI: Option<c_long> = Some(0x4000_0000);
    #[cfg(not(target_arch = "x86_64"))]
    const OTHER_ABI: Option<c_long> = None;

    /// Has the kernel refuse, to this thread and all that it starts, what no tool needs, and sockets and programs as said.
    pub(super) fn deny(sockets: Sockets, programs: bool) -> Result<(), String> {
        let program = filter(sockets, programs).map_err(|error| error.to_string())?;
        seccompiler::apply_filter(&program).map_err(|error| format!("the kernel has no seccomp: {error}"))
    }

    fn filter(sockets: Sockets, programs: bool) -> Result<BpfProgram, seccompiler::BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        let mut deny = |call: c_long, rule: Vec<SeccompRule>| {
            for bit in std::iter::once(0).chain(OTHER_ABI) {
                rules.insert(call | bit, rule.clone());
            }
        };
        for call in NEVER {
            deny(call, Vec::new());
        }
        match sockets {
            Sockets::Any => {}
            Sockets::None => deny(libc::SYS_socket, Vec::new()),
            Sockets::Netlink => {
                let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
                let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, netlink)?;
                deny(libc::SYS_socket, vec![SeccompRule::new(vec![other])?]);
            }
        }
        if !programs {
            deny(libc::SYS_execve, Vec::new());
            deny(libc::SYS_execveat, Vec::new());
        }
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?.try_into()
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls {
    use super::Sockets;

    /// There is no filter for this CPU.
    pub(super) fn deny(_sockets: Sockets, _programs: bool) -> Result<(), String> {
        Err(format!("there is no filter for this CPU: {}", std::env::consts::ARCH))
    }
}
