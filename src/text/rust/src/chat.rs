//! From the request's JSON to what a chat template expects.
//!
//! Templates are written for plain strings: text parts are joined, a missing content is "", and a
//! tool call's arguments, which the API carries as a JSON string, become the object they spell.

use serde_json::{json, Map, Value};

use crate::error::{Error, Result};
use crate::json::to_spaced_json;

pub fn parse_array(text: &str, param: &str) -> Result<Vec<Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) => Ok(items),
        Ok(_) => Err(Error::invalid(format!("{param} is not an array")).at(param)),
        Err(e) => Err(Error::invalid(format!("{param} is not valid JSON: {e}")).at(param)),
    }
}

/// Checks and normalises `messages`; an error names the field.
pub fn normalise_messages(messages: &mut [Value]) -> Result<()> {
    for (i, message) in messages.iter_mut().enumerate() {
        let at = format!("messages[{i}]");
        let Value::Object(message) = message else {
            return Err(Error::invalid(format!("{at} is not an object")).at(at));
        };
        if !matches!(message.get("role"), Some(Value::String(_))) {
            return Err(
                Error::invalid(format!("{at}.role is not a string")).at(format!("{at}.role"))
            );
        }
        let content = plain_content(message.get("content"), &format!("{at}.content"))?;
        message.insert("content".into(), Value::String(content));
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            calls.iter_mut().for_each(parse_arguments);
        }
    }
    Ok(())
}

fn plain_content(content: Option<&Value>, at: &str) -> Result<String> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(s)) => Ok(s.clone()),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().enumerate().map(|(i, part)| match part["text"].as_str() {
                Some(text) if part["type"] == "text" => Ok(text),
                _ => Err(Error::invalid(format!("{at}[{i}] is not a text part"))
                    .at(format!("{at}[{i}]"))),
            });
            Ok(texts.collect::<Result<Vec<_>>>()?.join("\n"))
        }
        Some(_) => Err(Error::invalid(format!("{at} is neither text nor parts")).at(at)),
    }
}

fn parse_arguments(call: &mut Value) {
    if let Some(arguments) = call.get_mut("function").and_then(|f| f.get_mut("arguments")) {
        if let Some(Ok(object)) = arguments.as_str().map(serde_json::from_str::<Map<String, Value>>)
        {
            *arguments = Value::Object(object);
        }
    }
}

/// For a template without a tools branch: tools go in front of the system message, calls of
/// earlier turns behind the content of theirs. docs/tools.md shows the form.
pub fn fold_tools(messages: &mut Vec<Value>, tools: &[Value]) {
    messages.iter_mut().for_each(fold_calls);
    if tools.is_empty() {
        return;
    }
    let mut text = String::from(
        "These functions can be called. Each line is one function as JSON.\n<tools>\n",
    );
    for tool in tools {
        text.push_str(&to_spaced_json(tool, None));
        text.push('\n');
    }
    text.push_str(
        "</tools>\nTo call one, answer with its name and arguments, one call per block:\n\
         <tool_call>\n{\"name\": \"NAME\", \"arguments\": {}}\n</tool_call>",
    );
    match messages.first_mut() {
        Some(first) if first["role"] == "system" => {
            let own = first["content"].as_str().unwrap_or_default();
            first["content"] = Value::String(format!("{text}\n\n{own}"));
        }
        _ => messages.insert(0, json!({"role": "system", "content": text})),
    }
}

fn fold_calls(message: &mut Value) {
    let Some(Value::Array(calls)) = message.get("tool_calls") else {
        return;
    };
    let mut content = message["content"].as_str().unwrap_or_default().to_string();
    for call in calls {
        let f = &call["function"];
        let call = json!({"name": f["name"], "arguments": f["arguments"]});
        if !content.is_empty() {
            content.push('\n');
        }
        content.push_str(&format!("<tool_call>\n{}\n</tool_call>", to_spaced_json(&call, None)));
    }
    message["content"] = Value::String(content);
}
