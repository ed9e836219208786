//! Who may do what.

use super::{policy, request};
use lance_maintenance_auth::policy::Decision::{self, Allowed, Denied, NotAllowed};
use lance_maintenance_auth::policy::PolicyKind::{Identity, Resource};
use lance_maintenance_auth::policy::decide;

/// The caller's policy, the bucket's, the table's (in the notation of `super::policy`), a request
/// (in that of `super::request`), and the decision.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Decision,
);

fn check(rows: &[Row]) {
    for (identity, bucket, table, asked, expected) in rows {
        let own = policy(identity, Identity);
        let of_resources = [policy(bucket, Resource), policy(table, Resource)];
        let of_resources: Vec<_> = of_resources.iter().flatten().collect();
        let got = request(asked, |request| {
            decide(request, own.as_ref(), &of_resources)
        });
        assert_eq!(got, *expected, "{identity} | {bucket} | {table} | {asked}");
    }
}

const READ: &str = "alice oss:GetTable bucket/b/table/t";

#[test]
#[rustfmt::skip] // a line is a case
fn without_and_with_each_policy() {
    check(&[
        ("", "", "", READ, NotAllowed),
        ("Allow * *", "", "", READ, Allowed),
        ("", "Allow * * alice", "", READ, Allowed),
        ("", "", "Allow * * alice", READ, Allowed),
        ("Deny * *", "", "", READ, Denied),
        ("", "Deny * * alice", "", READ, Denied),
        ("", "", "Deny * * alice", READ, Denied),
        // Deny wins, wherever it is and whatever comes first.
        ("Allow * *; Deny * *", "", "", READ, Denied),
        ("Deny * *; Allow * *", "", "", READ, Denied),
        ("Allow * *", "Deny * * alice", "", READ, Denied),
        ("Allow * *", "", "Deny * * alice", READ, Denied),
        ("Deny * *", "Allow * * alice", "Allow * * alice", READ, Denied),
        ("", "Allow * * alice", "Deny * * alice", READ, Denied),
        ("", "Deny * * alice", "Allow * * alice", READ, Denied),
        ("Allow * *", "Allow * * alice", "Allow * * alice", READ, Allowed),
        // A Deny that does not apply is as good as none.
        ("Allow * *; Deny oss:DeleteTable *", "", "", READ, Allowed),
        ("Allow * *", "Deny * * bob", "", READ, Allowed),
        ("Allow * *", "", "Deny oss:Get* bucket/b/table/u *", READ, Allowed),
        ("Deny oss:DeleteTable *", "", "", READ, NotAllowed),
    ]);
}

#[test]
#[rustfmt::skip] // a line is a case
fn actions() {
    check(&[
        ("Allow oss:GetTable *", "", "", READ, Allowed),
        ("Allow oss:gettable *", "", "", READ, Allowed),
        ("Allow OSS:GetTable *", "", "", READ, Allowed),
        ("Allow oss:GetTable *", "", "", "alice oss:GetTablePolicy bucket/b/table/t", NotAllowed),
        ("Allow oss:GetTable* *", "", "", "alice oss:GetTablePolicy bucket/b/table/t", Allowed),
        ("Allow oss:*Table *", "", "", "alice oss:DeleteTable bucket/b/table/t", Allowed),
        ("Allow oss:*Table *", "", "", "alice oss:ListTables bucket/b", NotAllowed),
        ("Allow oss:ListTable? *", "", "", "alice oss:ListTables bucket/b", Allowed),
        ("Allow oss:GetTable,oss:ListTables *", "", "", "alice oss:ListTables bucket/b", Allowed),
        ("Allow oss:GetTable,oss:ListTables *", "", "", "alice oss:DeleteTable bucket/b/table/t", NotAllowed),
        ("Allow oss:* *", "", "", "alice oss:PutTableMaintenanceConfiguration bucket/b/table/t", Allowed),
        ("Allow oss:* *", "", "", "alice ram:ListAccessKeys user/alice", NotAllowed),
        ("Allow ram:* *", "", "", "alice ram:ListAccessKeys user/alice", Allowed),
        ("Allow ram:* *", "", "", READ, NotAllowed),
        ("Allow * *; Deny oss:Put* *", "", "", "alice oss:PutTableData bucket/b/table/t", Denied),
        ("Allow * *; Deny oss:Put* *", "", "", READ, Allowed),
        ("Allow * *; Deny oss:puttabledata *", "", "", "alice oss:PutTableData bucket/b/table/t", Denied),
        ("Allow oss:GetTableMaintenanceJobStatus *", "", "", "alice oss:GetTableMaintenanceJobStatus bucket/b/table/t", Allowed),
        ("Allow oss:GetTableMaintenanceJobStatus *", "", "", "alice oss:PutTableMaintenanceConfiguration bucket/b/table/t", NotAllowed),
    ]);
}

#[test]
#[rustfmt::skip] // a line is a case
fn resources() {
    check(&[
        ("Allow oss:* bucket/b/table/t", "", "", READ, Allowed),
        ("Allow oss:* bucket/b/table/*", "", "", READ, Allowed),
        ("Allow oss:* bucket/b/table/T", "", "", READ, NotAllowed),
        ("Allow oss:* bucket/b/table/?", "", "", READ, Allowed),
        ("Allow oss:* bucket/b/table/?", "", "", "alice oss:GetTable bucket/b/table/tt", NotAllowed),
        ("Allow oss:* bucket/c/table/*", "", "", READ, NotAllowed),
        ("Allow oss:* bucket/b", "", "", READ, NotAllowed),
        ("Allow oss:* bucket/b", "", "", "alice oss:ListTables bucket/b", Allowed),
        ("Allow oss:* bucket/b/*", "", "", "alice oss:ListTables bucket/b", NotAllowed),
        ("Allow oss:* bucket/b,bucket/b/*", "", "", READ, Allowed),
        ("Allow oss:* bucket/b,bucket/b/*", "", "", "alice oss:ListTables bucket/bb", NotAllowed),
        ("Allow oss:* bucket/b*", "", "", "alice oss:ListTables bucket/bb", Allowed),
        ("Allow oss:* bucket/*", "", "", READ, Allowed),
        ("Allow oss:* acs:osstables:local:1234:bucket/b/table/t", "", "", READ, Allowed),
        ("Allow oss:* acs:osstables:other:1234:bucket/b/table/t", "", "", READ, NotAllowed),
        ("Allow oss:* acs:osstables:local:99:*", "", "", READ, NotAllowed),
        ("Allow oss:* acs:oss:*:*:*", "", "", READ, NotAllowed),
        ("Allow oss:* acs:*:*:*:*", "", "", READ, Allowed),
        ("Allow oss:* *; Deny oss:* bucket/b/table/t", "", "", READ, Denied),
        ("Allow oss:* *; Deny oss:* bucket/b/table/t", "", "", "alice oss:GetTable bucket/b/table/t2", Allowed),
        ("Allow ram:* user/alice", "", "", "alice ram:CreateAccessKey user/alice", Allowed),
        ("Allow ram:* user/alice", "", "", "alice ram:CreateAccessKey user/bob", NotAllowed),
        ("Allow ram:* bucket/*", "", "", "alice ram:CreateAccessKey user/alice", NotAllowed),
        ("", "Allow oss:* bucket/b alice", "", READ, NotAllowed),
        ("", "Allow oss:* bucket/b/* alice", "", READ, Allowed),
    ]);
}

#[test]
#[rustfmt::skip] // a line is a case
fn principals() {
    check(&[
        ("", "Allow oss:* * *", "", READ, Allowed),
        ("", "Allow oss:* * *", "", "bob oss:GetTable bucket/b/table/t account=99", Allowed),
        ("", "Allow oss:* * 1234", "", READ, Allowed),
        ("", "Allow oss:* * 99", "", READ, NotAllowed),
        ("", "Allow oss:* * bob", "", READ, NotAllowed),
        ("", "Allow oss:* * bob,alice", "", READ, Allowed),
        ("", "Allow oss:* * Alice", "", READ, NotAllowed),
        ("", "Allow oss:* * acs:ram::1234:user/alice", "", READ, Allowed),
        ("", "Allow oss:* * acs:ram::1234:user/a*", "", READ, Allowed),
        ("", "Allow oss:* * acs:ram::1234:user/a*", "", "bob oss:GetTable bucket/b/table/t", NotAllowed),
        ("", "Allow oss:* * acs:ram::99:user/alice", "", READ, NotAllowed),
        ("", "Allow oss:* * acs:ram::99:user/alice", "", "alice oss:GetTable bucket/b/table/t account=99", Allowed),
        ("", "Allow oss:* * 1234", "", "1234 oss:GetTable bucket/b/table/t account=99", NotAllowed),
        ("", "Allow oss:* * acs:ram::99:user/1234", "", "1234 oss:GetTable bucket/b/table/t account=99", Allowed),
        ("Allow * *", "Deny oss:* * *", "", READ, Denied),
        ("Allow * *", "Deny oss:* * 1234", "", READ, Denied),
        ("Allow * *", "Deny oss:* * 99", "", READ, Allowed),
        ("Allow * *", "", "Deny oss:* * acs:ram::1234:user/?lice", READ, Denied),
        ("Allow * *", "", "Deny oss:* * acs:ram::1234:user/?lice", "bob oss:GetTable bucket/b/table/t", Allowed),
    ]);
}

#[test]
#[rustfmt::skip] // a line is a case
fn conditions() {
    const ELSEWHERE: &str = "alice oss:GetTable bucket/b/table/t from=203.0.113.1";
    const UNKNOWN: &str = "alice oss:GetTable bucket/b/table/t from=unknown";
    const PLAIN: &str = "alice oss:GetTable bucket/b/table/t tls=no";
    check(&[
        // where from
        ("Allow oss:* * IpAddress=10.0.0.0/8", "", "", READ, Allowed),
        ("Allow oss:* * IpAddress=10.0.0.0/8", "", "", ELSEWHERE, NotAllowed),
        ("Allow oss:* * IpAddress=10.0.0.0/8", "", "", UNKNOWN, NotAllowed),
        ("Allow oss:* * IpAddress=10.0.0.0/8", "", "", "alice oss:GetTable bucket/b/table/t from=::ffff:10.0.0.1", Allowed),
        ("Allow oss:* * IpAddress=192.168.0.0/16,203.0.113.1", "", "", ELSEWHERE, Allowed),
        ("Allow oss:* * NotIpAddress=10.0.0.0/8", "", "", READ, NotAllowed),
        ("Allow oss:* * NotIpAddress=10.0.0.0/8", "", "", ELSEWHERE, Allowed),
        ("Allow oss:* * NotIpAddress=10.0.0.0/8", "", "", UNKNOWN, NotAllowed),
        ("Allow oss:* * NotIpAddress=192.168.0.0/16,10.0.0.0/8", "", "", READ, NotAllowed),
        ("Allow * *; Deny oss:* * IpAddress=10.0.0.0/8", "", "", READ, Denied),
        ("Allow * *; Deny oss:* * IpAddress=10.0.0.0/8", "", "", ELSEWHERE, Allowed),
        ("Allow * *; Deny oss:* * IpAddress=10.0.0.0/8", "", "", UNKNOWN, Denied),
        ("Allow * *; Deny oss:* * NotIpAddress=10.0.0.0/8", "", "", READ, Allowed),
        ("Allow * *; Deny oss:* * NotIpAddress=10.0.0.0/8", "", "", ELSEWHERE, Denied),
        ("Allow * *; Deny oss:* * NotIpAddress=10.0.0.0/8", "", "", UNKNOWN, Denied),
        ("Allow * *", "Deny oss:Put* * * NotIpAddress=10.0.0.0/8", "", UNKNOWN, Allowed),
        // when
        ("Allow oss:* * DateLessThan=2026-07-28T01:02:04Z", "", "", READ, Allowed),
        ("Allow oss:* * DateLessThan=2026-07-28T01:02:03Z", "", "", READ, NotAllowed),
        ("Allow oss:* * DateLessThanEquals=2026-07-28T01:02:03Z", "", "", READ, Allowed),
        ("Allow oss:* * DateLessThan=2026-07-28T01:02:04Z", "", "", "alice oss:GetTable bucket/b/table/t later=1", NotAllowed),
        ("Allow oss:* * DateGreaterThan=2026-07-28T01:02:03Z", "", "", READ, NotAllowed),
        ("Allow oss:* * DateGreaterThan=2026-07-28T01:02:03Z", "", "", "alice oss:GetTable bucket/b/table/t later=1", Allowed),
        ("Allow oss:* * DateGreaterThanEquals=2026-07-28T09:02:03+08:00", "", "", READ, Allowed),
        ("Allow * *; Deny oss:* * DateGreaterThan=2027-01-01T00:00:00Z", "", "", READ, Allowed),
        ("Allow * *; Deny oss:* * DateGreaterThan=2026-01-01T00:00:00Z", "", "", READ, Denied),
        // how
        ("Allow oss:* * Bool=true", "", "", READ, Allowed),
        ("Allow oss:* * Bool=true", "", "", PLAIN, NotAllowed),
        ("Allow * *; Deny * * Bool=false", "", "", PLAIN, Denied),
        ("Allow * *; Deny * * Bool=false", "", "", READ, Allowed),
        ("Allow oss:* * Bool=true,false", "", "", PLAIN, Allowed),
        // all of them
        ("Allow oss:* * IpAddress=10.0.0.0/8 Bool=true", "", "", READ, Allowed),
        ("Allow oss:* * IpAddress=10.0.0.0/8 Bool=true", "", "", PLAIN, NotAllowed),
        ("Allow oss:* * IpAddress=10.0.0.0/8 NotIpAddress=10.0.0.1", "", "", READ, NotAllowed),
        ("Allow oss:* * IpAddress=10.0.0.0/8 NotIpAddress=10.0.0.2", "", "", READ, Allowed),
        ("Allow oss:* * DateGreaterThan=2026-01-01T00:00:00Z DateLessThan=2027-01-01T00:00:00Z", "", "", READ, Allowed),
        ("Allow oss:* * DateGreaterThan=2027-01-01T00:00:00Z DateLessThan=2028-01-01T00:00:00Z", "", "", READ, NotAllowed),
        ("Allow * *; Deny * * IpAddress=10.0.0.0/8 Bool=false", "", "", READ, Allowed),
        ("Allow * *; Deny * * IpAddress=10.0.0.0/8 Bool=false", "", "", "alice oss:GetTable bucket/b/table/t from=unknown tls=no", Denied),
        ("Allow * *; Deny * * IpAddress=10.0.0.0/8 Bool=false", "", "", UNKNOWN, Allowed),
        ("", "Allow oss:* bucket/b/* alice IpAddress=10.0.0.0/8", "Deny oss:* * * Bool=false", READ, Allowed),
        ("", "Allow oss:* bucket/b/* alice IpAddress=10.0.0.0/8", "Deny oss:* * * Bool=false", PLAIN, Denied),
        ("", "Allow oss:* bucket/b/* alice IpAddress=10.0.0.0/8", "Deny oss:* * * Bool=false", ELSEWHERE, NotAllowed),
    ]);
}
