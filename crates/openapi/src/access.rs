//! Policies and credentials, as `lance-maintenance-auth` reads them. Unlike the other bodies they
//! are taken literally: fields that are not known and `null` are refused.
//!
//! Schemas can't say everything here: that an action pattern matches some action, that there are no
//! variables in an ARN, or that of a policy not more than 16 KiB are taken.

use serde_json::{Value, json};

const DATE_OPERATORS: [&str; 4] = [
    "DateLessThan",
    "DateLessThanEquals",
    "DateGreaterThan",
    "DateGreaterThanEquals",
];
const ACTION: &str = "^(\\*|([Oo][Ss][Ss]|[Rr][Aa][Mm]):.*)$";
const RESOURCE: &str = "^(\\*|acs:[^:]+:[^:]*:[^:]*:.+)$";
const PRINCIPAL: &str = "^(\\*|[0-9]+|[A-Za-z0-9._@-]{1,64}|acs:ram::[0-9]+:user/[!-+\\-.0-~]+)$";
/// Visible ASCII without `,` and `/`.
const ACCESS_KEY_ID: &str = "^[!-+\\-.0-~]{1,128}$";

/// The schemas and the names of their components.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("ResourcePolicy", policy(true)),
        ("IdentityPolicy", policy(false)),
        ("PutCredentialRequest", put_credential()),
        ("Credential", credential()),
        ("ListCredentialsResponse", list_credentials()),
    ]
}

fn policy(has_principal: bool) -> Value {
    let mut statement = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["Effect", "Action", "Resource"],
        "properties": {
            "Sid": text("Any text; it means nothing."),
            "Effect": {"type": "string", "enum": ["Allow", "Deny"]},
            "Action": one_or_many(pattern(
                ACTION,
                "`*` or `service:Name` with wildcards, in any case.",
            )),
            "Resource": one_or_many(pattern(
                RESOURCE,
                "`*` or an ARN with wildcards: `acs:service:region:account:relative`.",
            )),
            "Condition": condition(),
        },
    });
    let what = if has_principal {
        statement["required"] = json!(["Effect", "Action", "Resource", "Principal"]);
        let named = one_or_many(pattern(
            PRINCIPAL,
            "`*`, an account's id, a user's name, or `acs:ram::{account}:user/{name}`.",
        ));
        statement["properties"]["Principal"] = json!({
            "anyOf": [
                named,
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["RAM"],
                    "properties": {"RAM": named},
                },
            ],
        });
        "What may be done to a bucket or a table, and by whom."
    } else {
        "What a user may do."
    };
    json!({
        "type": "object",
        "description": what,
        "additionalProperties": false,
        "required": ["Version", "Statement"],
        "properties": {
            "Version": {"type": "string", "const": "1"},
            "Statement": one_or_many(statement),
        },
    })
}

fn condition() -> Value {
    let address = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["acs:SourceIp"],
        "properties": {"acs:SourceIp": one_or_many(text("An address or a CIDR block."))},
    });
    let time = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["acs:CurrentTime"],
        "properties": {
            "acs:CurrentTime": one_or_many(json!({"type": "string", "format": "date-time"})),
        },
    });
    let mut operators = json!({
        "IpAddress": address,
        "NotIpAddress": address,
        "Bool": {
            "type": "object",
            "additionalProperties": false,
            "required": ["acs:SecureTransport"],
            "properties": {
                "acs:SecureTransport": one_or_many(json!({"enum": ["true", "false", true, false]})),
            },
        },
    });
    for operator in DATE_OPERATORS {
        operators[operator] = time.clone();
    }
    json!({
        "type": "object",
        "description": "All of it must hold, of several values one.",
        "additionalProperties": false,
        "properties": operators,
    })
}

fn put_credential() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "access_key_id": {
                "type": "string",
                "pattern": ACCESS_KEY_ID,
                "description": "The key's public half once more; another one than in the path is refused.",
            },
            "secret_access_key": {
                "type": "string",
                "pattern": "^[ -~]{8,256}$",
                "writeOnly": true,
                "description": "The key's secret half. A credential that exists keeps its own, and its \
                                session token, if this is absent.",
            },
            "session_token": {
                "type": "string",
                "pattern": "^[!-~]{1,1024}$",
                "writeOnly": true,
                "description": "The token that requests must carry; absent for a permanent key.",
            },
            "user": {
                "type": "string",
                "pattern": "^[A-Za-z0-9._@-]{1,64}$",
                "description": "The user who holds the key; if absent, called like the key.",
            },
            "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
            "expires_at": {
                "type": "string",
                "format": "date-time",
                "description": "Until when the key may be used; absent for always.",
            },
            "policy": {"$ref": "#/components/schemas/IdentityPolicy"},
        },
    })
}

fn credential() -> Value {
    json!({
        "type": "object",
        "description": "What may be shown of a credential: everything but its secrets.",
        "additionalProperties": false,
        "required": ["access_key_id", "user", "status", "expires_at", "temporary", "policy"],
        "properties": {
            "access_key_id": {"type": "string", "description": "The key's public half."},
            "user": {"type": "string", "description": "The user who holds the key."},
            "status": {"type": "string", "enum": ["active", "inactive"]},
            "expires_at": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "Until when the key may be used; null for always.",
            },
            "temporary": {
                "type": "boolean",
                "description": "Whether requests must carry a session token.",
            },
            "policy": {
                "anyOf": [{"$ref": "#/components/schemas/IdentityPolicy"}, {"type": "null"}],
            },
        },
    })
}

fn list_credentials() -> Value {
    json!({
        "type": "object",
        "required": ["credentials"],
        "properties": {
            "credentials": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Credential"},
            },
            "page_token": {
                "type": "string",
                "description": "Where the next page starts; absent on the last.",
            },
        },
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "maxLength": 1024, "description": description})
}

fn pattern(pattern: &str, description: &str) -> Value {
    let mut schema = text(description);
    schema["pattern"] = json!(pattern);
    schema
}

fn one_or_many(one: Value) -> Value {
    json!({
        "anyOf": [one, {"type": "array", "minItems": 1, "maxItems": 100, "items": one}],
    })
}
