//! Which model to use.

use crate::{Config, ConfigError, Env, Origin, provider};

/// The model taken from each provider when only its key says that it is wanted. Names without a date where the
/// provider has such, so that they go on meaning its present model.
pub const DEFAULT_MODELS: [(&str, &str); 5] = [
    ("openai", "gpt-5.5"),
    ("anthropic", "claude-sonnet-5"),
    ("gemini", "gemini-flash-latest"),
    ("openrouter", "openrouter/auto"),
    ("deepseek", "deepseek-chat"),
];

/// The model to use: the one that is set, else the default model of the first provider whose key variable is set.
/// `rehearsal`, `script:FILE` and `tape:FILE` are passed on as they are, though nothing plays tapes yet.
///
/// # Errors
/// When the model that is set is not `provider/name` of a known provider; [`ConfigError::NoModel`] when none is set
/// and no key is there, so that the caller can ask [`Config::local_servers`] before it gives up.
pub fn model_choice(config: &Config, env: &Env) -> Result<String, ConfigError> {
    match &config.model {
        Some(model) => check(model, config).map(|()| model.clone()),
        None => by_key(config, env),
    }
}

fn by_key(config: &Config, env: &Env) -> Result<String, ConfigError> {
    let mut variables = Vec::new();
    for (name, model) in DEFAULT_MODELS {
        let Some(variable) = config.providers.get(name).and_then(|p| p.api_key_env.as_ref()) else { continue };
        if env.key(variable).is_some() {
            return Ok(format!("{name}/{model}"));
        }
        variables.push(variable.clone());
    }
    Err(ConfigError::NoModel { variables })
}

fn check(model: &str, config: &Config) -> Result<(), ConfigError> {
    let origin = || config.origin("model");
    if model == "rehearsal" {
        return Ok(());
    }
    if let Some(file) = model.strip_prefix("script:").or_else(|| model.strip_prefix("tape:")) {
        let named = !file.trim().is_empty();
        return if named { Ok(()) } else { Err(ConfigError::ModelFile { model: model.to_owned(), origin: origin() }) };
    }
    match model.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => known(model, provider, config, origin),
        _ => Err(ConfigError::ModelForm {
            model: stdx::one_line(model, crate::error::QUOTE),
            origin: origin(),
            example: example(model),
        }),
    }
}

fn known(model: &str, provider: &str, config: &Config, origin: impl Fn() -> Origin) -> Result<(), ConfigError> {
    if config.providers.contains_key(provider) {
        return Ok(());
    }
    // Built-in ones first, in their order; then the user's own.
    let built_in = provider::KNOWN.iter().map(|(name, ..)| *name);
    let own = config.providers.keys().map(String::as_str).filter(|name| built_in.clone().all(|b| b != *name));
    let known: Vec<_> = built_in.clone().chain(own).collect();
    Err(ConfigError::NoProvider {
        model: model.to_owned(),
        origin: origin(),
        nearest: stdx::nearest(provider, known.iter().copied()).map(str::to_owned),
        known: known.iter().map(|name| (*name).to_owned()).collect(),
    })
}

/// The form filled in with what was probably meant.
fn example(model: &str) -> String {
    let model = model.trim_matches('/');
    if let Some((provider, name)) = DEFAULT_MODELS.iter().find(|(provider, _)| *provider == model) {
        return format!("{provider}/{name}");
    }
    let by_prefix = [("gpt", "openai"), ("claude", "anthropic"), ("gemini", "gemini"), ("deepseek", "deepseek")];
    match by_prefix.iter().find(|(prefix, _)| model.starts_with(prefix)) {
        Some((_, provider)) => format!("{provider}/{model}"),
        None => "openai/gpt-5.5".to_owned(),
    }
}

#[cfg(test)]
mod tests;
