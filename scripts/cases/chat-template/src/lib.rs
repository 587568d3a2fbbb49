//! A server that writes a conversation into the model's chat template, once for each request: as many turns as the prompt has
//! tokens. The "model" is a sum over the text.

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};
use minijinja::{Environment, Value, context};

const CONTEXT_TOKENS: usize = 256;

/// Roles, a system prompt if none is given, trimmed texts: what published templates do.
const TEMPLATE: &str = "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}\
{% for message in messages %}{% if message.role == 'assistant' and loop.last %}{{ raise }}{% endif %}\
<|im_start|>{{ message['role'] }}\n{{ message['content'] | trim }}<|im_end|>\n{% endfor %}\
{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

struct Chat {
    environment: Environment<'static>,
    /// Who says it, and what.
    turns: Vec<(&'static str, String)>,
}

impl Chat {
    fn render(&self) -> Result<TokenId> {
        let template = self.environment.get_template("chat")?;
        let turn = |(role, content): &(&'static str, String)| context! { role => *role, content => content.as_str() };
        let messages: Vec<Value> = self.turns.iter().map(turn).collect();
        let text = template.render(context! { messages => messages, add_generation_prompt => true })?;
        Ok(text.bytes().fold(0, |sum, byte| (sum * 31 + TokenId::from(byte)) % 256))
    }

    fn say(&mut self, id: TokenId) {
        let role = ["user", "assistant"][self.turns.len() % 2];
        let content = format!(" Turn {id} says something of the usual length, and waits for an answer. ");
        self.turns.push((role, content));
    }
}

impl Engine for Chat {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "chat".into(),
            version: "1".into(),
            model: "template".into(),
            dtype: "u8".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure_fits(prompt.len() + 1, CONTEXT_TOKENS)?;
        self.turns.clear();
        prompt.iter().for_each(|id| self.say(*id));
        self.next()
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.turns.len() + 1, CONTEXT_TOKENS)?;
        let id = self.render()?;
        self.say(id);
        Ok(id)
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    let mut environment = Environment::new();
    environment.add_template("chat", TEMPLATE)?;
    Ok(Box::new(Chat { environment, turns: Vec::new() }))
}
