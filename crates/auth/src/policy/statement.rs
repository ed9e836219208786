//! A statement: what it says and when it applies.

use serde_json::Value;

use super::actions::ActionPattern;
use super::condition::Condition;
use super::error::{Place, PolicyError};
use super::fields::{self, Fields};
use super::principal::Principal;
use super::resource::ResourcePattern;
use super::{PolicyKind, Request};

const KEYS: &[&str] = &[
    "Sid",
    "Effect",
    "Action",
    "Resource",
    "Principal",
    "Condition",
];

/// What follows if a statement applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Allow,
    Deny,
}

/// A statement. That of an identity policy has no principals: it speaks of whoever has the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) effect: Effect,
    actions: Vec<ActionPattern>,
    resources: Vec<ResourcePattern>,
    principals: Option<Vec<Principal>>,
    conditions: Vec<Condition>,
}

impl Statement {
    pub(super) fn read(
        value: &Value,
        kind: PolicyKind,
        place: &Place<'_>,
    ) -> Result<Self, PolicyError> {
        let fields = Fields::read(value, place, KEYS)?;
        if let Some((sid, at)) = fields.optional("Sid") {
            fields::text(sid, &at)?;
        }
        let (effect, at) = fields.required("Effect")?;
        let effect = match effect.as_str() {
            Some("Allow") => Effect::Allow,
            Some("Deny") => Effect::Deny,
            _ => return Err(at.error("must be Allow or Deny")),
        };
        let (actions, at) = fields.required("Action")?;
        let actions = fields::one_or_many(actions, &at, ActionPattern::read)?;
        let (resources, at) = fields.required("Resource")?;
        let resources = fields::one_or_many(resources, &at, ResourcePattern::read)?;
        let principals = match (kind, fields.optional("Principal")) {
            (PolicyKind::Identity, None) => None,
            (PolicyKind::Identity, Some((_, at))) => {
                return Err(at.error(
                    "must not be in a user's policy, which speaks of that user: leave it out",
                ));
            }
            (PolicyKind::Resource, _) => {
                let (principals, at) = fields.required("Principal")?;
                Some(Principal::read_all(principals, &at)?)
            }
        };
        let conditions = match fields.optional("Condition") {
            Some((conditions, at)) => Condition::read_all(conditions, &at)?,
            None => Vec::new(),
        };
        Ok(Self {
            effect,
            actions,
            resources,
            principals,
            conditions,
        })
    }

    /// Whether the statement is about a request. What is not known counts against the caller: a
    /// condition about it holds if the statement denies, and does not if it allows.
    pub(super) fn applies(&self, request: &Request<'_>) -> bool {
        let unknown = self.effect == Effect::Deny;
        self.actions.iter().any(|it| it.matches(request.action))
            && self.resources.iter().any(|it| it.matches(request.resource))
            && self
                .principals
                .as_ref()
                .is_none_or(|list| list.iter().any(|it| it.matches(request)))
            && self
                .conditions
                .iter()
                .all(|it| it.holds(request).unwrap_or(unknown))
    }
}
