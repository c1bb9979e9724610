//! Resources and prompts of a server, as tools: a program can do nothing with anything else.
//!
//! A server that has them gets up to four tools more, unless it has tools of these names itself. What they are called with and what they
//! give has the form of every other tool.

use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, JsonObject, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ResourceContents, ServerCapabilities,
};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Value, json};

use super::client::{CallError, refusal};
use crate::tools::catalogue::ToolDescription;

/// Pages of resources or prompts that are listed.
const MAX_PAGES: usize = 16;

const LIST_RESOURCES: &str = "list_resources";
const READ_RESOURCE: &str = "read_resource";
const LIST_PROMPTS: &str = "list_prompts";
const GET_PROMPT: &str = "get_prompt";

/// The tools that a server gets for what else it has.
pub(super) fn tools(capabilities: &ServerCapabilities) -> Vec<ToolDescription> {
    let tool = |name: &str, description: &str, parameters: Value| ToolDescription {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        read_only_hint: true,
    };
    let nothing = || json!({"type": "object", "properties": {}});
    let mut tools = Vec::new();
    if capabilities.resources.is_some() {
        let uri = json!({"type": "object", "properties": {"uri": {"type": "string", "description": "as list_resources gives it"}}, "required": ["uri"]});
        tools.push(tool(
            LIST_RESOURCES,
            "List the resources that this server offers: their URIs, names and types",
            nothing(),
        ));
        tools.push(tool(READ_RESOURCE, "Read a resource of this server by its URI", uri));
    }
    if capabilities.prompts.is_some() {
        let name = json!({"type": "object", "properties": {
            "name": {"type": "string", "description": "as list_prompts gives it"},
            "arguments": {"type": "object", "description": "its arguments, all of them texts"}}, "required": ["name"]});
        tools.push(tool(
            LIST_PROMPTS,
            "List the prompts that this server offers: their names, arguments and uses",
            nothing(),
        ));
        tools.push(tool(GET_PROMPT, "Get a prompt of this server, written out", name));
    }
    tools
}

/// Calls one of these tools.
pub(super) async fn call(
    peer: &Peer<RoleClient>,
    tool: &str,
    arguments: &JsonObject,
) -> Result<CallToolResult, CallError> {
    let text = |name: &str| {
        let given = arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        given.ok_or_else(|| CallError::Refused(format!("it needs a text as an argument: {name}")))
    };
    match tool {
        LIST_RESOURCES => Ok(CallToolResult::structured(json!({"resources": resources(peer).await?}))),
        LIST_PROMPTS => Ok(CallToolResult::structured(json!({"prompts": prompts(peer).await?}))),
        READ_RESOURCE => match peer.read_resource_once(ReadResourceRequestParams::new(text("uri")?)).await {
            Ok(ReadResourceResponse::Complete(result)) => {
                Ok(CallToolResult::success(result.contents.into_iter().map(content).collect()))
            }
            Ok(_) => Err(wants_more()),
            Err(error) => Err(failed(error)),
        },
        GET_PROMPT => {
            let mut params = GetPromptRequestParams::new(text("name")?);
            params.arguments = arguments.get("arguments").and_then(Value::as_object).cloned();
            match peer.get_prompt_once(params).await {
                Ok(GetPromptResponse::Complete(result)) => {
                    Ok(CallToolResult::success(result.messages.into_iter().map(|message| message.content).collect()))
                }
                Ok(_) => Err(wants_more()),
                Err(error) => Err(failed(error)),
            }
        }
        _ => Err(CallError::Refused(format!("no such tool: {tool}"))),
    }
}

async fn resources(peer: &Peer<RoleClient>) -> Result<Vec<Value>, CallError> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_resources(Some(params)).await.map_err(failed)?;
        all.extend(page.resources.into_iter().map(|resource| {
            json!({"uri": resource.uri, "name": resource.name, "description": resource.description, "mime": resource.mime_type})
        }));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(all)
}

async fn prompts(peer: &Peer<RoleClient>) -> Result<Vec<Value>, CallError> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_prompts(Some(params)).await.map_err(failed)?;
        all.extend(page.prompts.into_iter().map(|prompt| {
            let arguments = prompt.arguments.unwrap_or_default().into_iter();
            let arguments: Vec<Value> = arguments
                .map(|argument| json!({"name": argument.name, "required": argument.required.unwrap_or(false)}))
                .collect();
            json!({"name": prompt.name, "description": prompt.description, "arguments": arguments})
        }));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(all)
}

/// A text as a text, anything else as what it is.
fn content(contents: ResourceContents) -> ContentBlock {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => ContentBlock::text(text),
        other => ContentBlock::resource(other),
    }
}

fn wants_more() -> CallError {
    CallError::Refused("it wants more from us than arguments, which is not supported yet".to_owned())
}

fn failed(error: ServiceError) -> CallError {
    refusal(error).map_or(CallError::Broken, CallError::Refused)
}
