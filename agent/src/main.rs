//! The `mote` binary: parses the command line and exits with the code that the command gives.

fn main() -> std::process::ExitCode {
    mote::cli::main()
}
