//! Why a name is not a model.

/// The smallest useful script, for people whose script is wrong.
const EXAMPLE: &str = "a rule looks like this:\n[[rule]]\nagent = \"/root\"\nafter = 0\n\
                       reply = [{ text = \"You said: ${prompt}\" }]";

/// Why a name is not a model. [`OpenError::hints`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such provider.
    #[error("there is no provider called `{name}`; the providers are: {known}")]
    UnknownProvider {
        /// The name as given.
        name: String,
        /// The known ones, separated by commas.
        known: String,
        /// The known one it may have meant.
        meant: Option<String>,
    },
    /// The name has no slash, or nothing behind it.
    #[error("`{0}` is not a model: write PROVIDER/NAME, for example `openai/gpt-5.5`")]
    NotAModel(String),
    /// The provider wants a key and there is none.
    #[error("the provider `{provider}` needs a key and {variable} is not set")]
    NoKey {
        /// The provider.
        provider: String,
        /// The variable that should hold it.
        variable: String,
    },
    /// Tapes are not built yet.
    #[error("`{0}`: tapes are not built yet")]
    TapeNotBuilt(String),
    /// A script's file cannot be read.
    #[error("the script {file} cannot be read: {cause}")]
    ScriptUnreadable {
        /// The file.
        file: String,
        /// The system's words.
        cause: String,
    },
    /// A script is wrong.
    #[error("{file}, line {line}: {message}")]
    Script {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
}

impl OpenError {
    /// What to do about it.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::UnknownProvider { name, meant, .. } => {
                let example = format!(
                    "or name it in config.toml:\n[providers.{name}]\nbase_url = \"http://127.0.0.1:8080/v1\"\n\
                     wire = \"chat\"\napi_key_env = \"{}_KEY\"",
                    name.to_ascii_uppercase().replace('-', "_")
                );
                meant.iter().map(|meant| format!("did you mean `{meant}`?")).chain([example]).collect()
            }
            Self::NotAModel(name) => {
                let meant =
                    stdx::nearest(name, [crate::rehearsal::NAME]).map(|meant| format!("did you mean `{meant}`?"));
                let without = "`rehearsal` needs no key and no network; `script:FILE` plays a script".to_owned();
                meant.into_iter().chain([without]).collect()
            }
            Self::NoKey { variable, .. } => vec![
                format!("set it: export {variable}=…"),
                "or use a local server, or `--model rehearsal`, which needs no key".to_owned(),
            ],
            Self::TapeNotBuilt(_) => vec!["`script:FILE` plays a script".to_owned()],
            Self::ScriptUnreadable { .. } => {
                vec![
                    "write `script:FILE` with a file that exists; relative ones start at the working folder".to_owned(),
                ]
            }
            Self::Script { .. } => vec![EXAMPLE.to_owned()],
        }
    }
}
