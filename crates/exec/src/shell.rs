//! Which shell runs a command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{Environment, Error};

/// Where a shell is looked for when PATH has none.
const USUAL: [&str; 2] = ["/bin", "/usr/bin"];

/// A shell that takes `-c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    program: PathBuf,
}

impl Shell {
    /// The default shell: bash, or sh where there is no bash. Looked up once, so that no call pays for it.
    ///
    /// # Errors
    /// When there is neither.
    pub fn find(environment: &Environment) -> Result<Self, Error> {
        ["bash", "sh"]
            .iter()
            .find_map(|name| look_up(name, environment))
            .map(|program| Self { program })
            .ok_or(Error::NoShell)
    }

    /// A shell by name or absolute path.
    ///
    /// # Errors
    /// When it is not there.
    pub fn named(name: &str, environment: &Environment) -> Result<Self, Error> {
        look_up(name, environment).map(|program| Self { program }).ok_or_else(|| Error::NoProgram(name.into()))
    }

    /// The program itself.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The arguments that make it run `command`. A login shell reads the user's profile, which may take seconds.
    pub fn arguments(&self, command: &str, login: bool) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::with_capacity(3);
        if login {
            arguments.push("-l".into());
        }
        arguments.push("-c".into());
        arguments.push(command.into());
        arguments
    }
}

fn look_up(name: &str, environment: &Environment) -> Option<PathBuf> {
    let given = Path::new(name);
    if given.is_absolute() {
        return given.is_file().then(|| given.to_path_buf());
    }
    // A relative path with folders in it would mean a different file in every working folder.
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let path = environment.get("PATH").unwrap_or_default();
    std::env::split_paths(path)
        .chain(USUAL.map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_is_preferred_and_sh_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = |dir: &Path| Environment::new([("PATH".into(), dir.as_os_str().to_owned())]);
        std::fs::write(folder.path().join("mine"), "").unwrap();
        let shell = Shell::named("mine", &path(folder.path())).unwrap();
        assert_eq!(shell.program(), folder.path().join("mine"));
        assert!(matches!(Shell::named("bin/mine", &path(folder.path())), Err(Error::NoProgram(_))));
        assert!(matches!(Shell::named("no-such-shell", &path(folder.path())), Err(Error::NoProgram(_))));
        std::fs::write(folder.path().join("bash"), "").unwrap();
        assert_eq!(Shell::find(&path(folder.path())).unwrap().program(), folder.path().join("bash"));
    }

    #[test]
    fn login_only_on_request() {
        let shell = Shell { program: "/bin/sh".into() };
        assert_eq!(shell.arguments("a b", false), ["-c", "a b"]);
        assert_eq!(shell.arguments("a b", true), ["-l", "-c", "a b"]);
    }
}
