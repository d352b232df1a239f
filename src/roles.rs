//! Role files: finding and reading them. What they say is judged by the crate `roles`.

use std::path::Path;

use config::Config;
use roles::{Layer, MAX_FILE, Parsed, Problem, Roles};
use stdx::AbsPath;

use crate::wire::Setting;

/// The roles in force for work in this folder: built-in ones, the user's, and those of a trusted project.
pub(crate) fn load(setting: &Setting, config: &Config) -> (Roles, Vec<Problem>) {
    let mut parsed = Vec::new();
    let mut problems = Vec::new();
    read(setting, &setting.store.home().join("agents"), Layer::User, &mut parsed, &mut problems);
    let project = project(&setting.cwd);
    let folder = project.join(".agent").join("agents");
    if trusted(config, &project) {
        read(setting, &folder, Layer::Project, &mut parsed, &mut problems);
    } else if folder.is_dir() {
        problems.push(Problem {
            file: setting.env.tilde(&folder),
            line: None,
            key: None,
            message: format!(
                "not read, because the project is not trusted; to trust it, add \"{project}\" to trusted_projects in {}",
                setting.env.tilde(&setting.store.home().join("config.toml"))
            ),
        });
    }
    let mut roles = Roles::builtin();
    problems.extend(roles.merge(parsed));
    (roles, problems)
}

/// The nearest folder at or above `cwd` that holds a repository, else `cwd` itself.
fn project(cwd: &AbsPath) -> AbsPath {
    let with_git = cwd.ancestors().find(|folder| folder.join(".git").exists());
    with_git.and_then(|folder| AbsPath::new(folder).ok()).unwrap_or_else(|| cwd.clone())
}

fn trusted(config: &Config, project: &AbsPath) -> bool {
    let same = |named: &String| {
        let named = Path::new(named);
        named == project.as_path() || std::fs::canonicalize(named).is_ok_and(|named| named == project.as_path())
    };
    config.trusted_projects.iter().any(same)
}

fn read(setting: &Setting, folder: &AbsPath, layer: Layer, parsed: &mut Vec<Parsed>, problems: &mut Vec<Problem>) {
    let problem =
        |file: &AbsPath, message: String| Problem { file: setting.env.tilde(file), line: None, key: None, message };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => return problems.push(problem(folder, format!("cannot be read: {error}"))),
    };
    let mut files: Vec<AbsPath> = entries
        .flatten()
        .filter_map(|entry| AbsPath::new(entry.path()).ok())
        .filter(|file| file.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    for file in files {
        match text(&file) {
            Ok(text) => match roles::parse(layer, &setting.env.tilde(&file), &text) {
                Ok(role) => parsed.push(role),
                Err(wrong) => {
                    problems.push(Problem { message: format!("{}; this role is left out", wrong.message), ..wrong });
                }
            },
            Err(message) => problems.push(problem(&file, message)),
        }
    }
}

/// The text of a role file, which is bounded because it ends up in requests.
fn text(file: &AbsPath) -> Result<String, String> {
    use std::io::Read as _;
    let meta = std::fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("is not a file: remove it, or give it another ending than .toml".to_owned());
    }
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| format!("cannot be read: {error}"))?;
    let read = opened.take(MAX_FILE as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot be read: {error}; save it as UTF-8"))?;
    Ok(text)
}
