//! Why a process could not be started or spoken to.

use std::io;
use std::path::PathBuf;

/// What went wrong. The texts are read by a model: they say what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The working folder is not there.
    #[error("the folder `{}` does not exist; create it first or give another workdir", .0.display())]
    NoFolder(PathBuf),
    /// The working folder is something else.
    #[error("`{}` is not a folder; give a folder as workdir", .0.display())]
    NotAFolder(PathBuf),
    /// The program is not there.
    #[error("the program `{}` was not found; give its absolute path or one that is on PATH", .0.display())]
    NoProgram(PathBuf),
    /// There is no shell at all.
    #[error("neither bash nor sh was found; install one or put it on PATH")]
    NoShell,
    /// The command line holds a NUL byte, which no process can be given.
    #[error("the command line contains a NUL byte; remove it")]
    Nul,
    /// The command line and environment are longer than the system takes.
    #[error("the command line is too long for the system; write it to a file and run that")]
    TooLong,
    /// The system refused for another reason.
    #[error("the system did not start `{}`: {source}; check that it is executable and that the limits on processes and open files are not used up", program.display())]
    Spawn {
        /// What was to be started.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It was started without a stdin.
    #[error("the process was started without stdin; start it again with `\"stdin\": true` to write to it")]
    NoStdin,
    /// It does not take input any more.
    #[error("the process has closed its stdin and takes no more input")]
    StdinClosed,
    /// It takes input, but did not read this in time.
    #[error(
        "the process does not read its stdin: {written} of {len} bytes were taken; poll it and send the rest later"
    )]
    StdinFull {
        /// Bytes that went into the pipe.
        written: usize,
        /// Bytes that were to be written.
        len: usize,
    },
}
