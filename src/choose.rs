//! Which model to use: the one that is set, else the first key that is there, else a local server that answers.

use config::{Config, ConfigError};
use orchestrator::Options;

use crate::exit::Failure;
use crate::output;
use crate::wire::Setting;

pub(crate) async fn model(setting: &Setting, config: &Config, options: &Options) -> Result<String, Failure> {
    let error = match config::model_choice(config, &setting.env) {
        Ok(model) => return Ok(model),
        Err(error @ ConfigError::NoModel { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let local: Vec<(&str, &str)> =
        config.local_servers().into_iter().map(|(name, provider)| (name, provider.base_url.as_str())).collect();
    let answering = options.catalog.local_servers(&local).await;
    for (server, models) in &answering {
        if let Some(model) = models.first() {
            let chosen = format!("{server}/{model}");
            output::note(&format!("no model is set: using {chosen}, which a local server offers"));
            return Ok(chosen);
        }
    }
    let failure = Failure::from(error);
    Err(match answering.first() {
        Some((server, _)) => failure.hint(format!("{server} answers and has no model: load one there")),
        None => failure,
    })
}
