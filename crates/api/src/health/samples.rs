//! Reports to try rules on.

use super::{
    Bytes, ColumnFiles, CompactionOutlook, FragmentSizes, HealthReport, IndexHealth, Missing,
    OpenTask, VersionAge,
};
use crate::jobs::{JobOperation, JobState};

/// 20 fragments of which one can be made: as after 20 small appends.
pub fn fragmented() -> HealthReport {
    HealthReport {
        compaction_tasks: Some(1),
        compaction: Some(CompactionOutlook {
            tasks: 1,
            fragments_rewritten: 20,
            fragments_added: 1,
            rows_rewritten: 1714,
            deleted_rows_dropped: 286,
            bytes_rewritten: 166_036,
            is_worthwhile: true,
            ..CompactionOutlook::default()
        }),
        ..healthy()
    }
}

pub fn healthy() -> HealthReport {
    HealthReport {
        num_rows: Some(1714),
        num_fragments: Some(20),
        compaction_tasks: Some(0),
        num_versions: Some(7),
        compaction: Some(CompactionOutlook::default()),
        indices: Some(vec![index("id_idx", 1, 1714, 0)]),
        column_files: Some(ColumnFiles {
            num_files: 20,
            most_per_fragment: 1,
            num_fragments_with_several: 0,
        }),
        fragment_sizes: Some(vec![FragmentSizes {
            bytes: 166_036,
            ..FragmentSizes::default()
        }]),
        bytes: Some(Bytes::default()),
        ..HealthReport::default()
    }
}

pub fn index(name: &str, segments: u64, indexed: u64, unindexed: i64) -> IndexHealth {
    IndexHealth {
        name: name.to_owned(),
        index_type: "BTree".to_owned(),
        num_segments: segments,
        num_rows_indexed: indexed,
        num_unindexed_rows: Some(unindexed),
        loses_coverage_in_compaction: name.starts_with("zone"),
    }
}

pub fn with_indices(report: HealthReport, indices: Vec<IndexHealth>) -> HealthReport {
    HealthReport {
        indices: Some(indices),
        ..report
    }
}

pub fn with_files(report: HealthReport, most: u64, several: u64) -> HealthReport {
    HealthReport {
        column_files: Some(ColumnFiles {
            num_files: most * several,
            most_per_fragment: most,
            num_fragments_with_several: several,
        }),
        ..report
    }
}

pub fn with_outlook(
    report: HealthReport,
    change: impl FnOnce(&mut CompactionOutlook),
) -> HealthReport {
    let mut outlook = report.compaction.clone().unwrap_or_default();
    change(&mut outlook);
    HealthReport {
        compaction: Some(outlook),
        ..report
    }
}

pub fn with_versions(versions: u64, reclaimable: u64, age: Option<u64>) -> HealthReport {
    HealthReport {
        num_versions: Some(versions),
        bytes: Some(Bytes {
            reclaimable,
            ..Bytes::default()
        }),
        oldest_version: age.map(|age_seconds| VersionAge {
            age_seconds,
            ..VersionAge::default()
        }),
        ..healthy()
    }
}

pub fn with_task(report: HealthReport, operation: JobOperation) -> HealthReport {
    HealthReport {
        tasks: Some(vec![OpenTask {
            job_id: "t-1".to_owned(),
            operation,
            state: JobState::Running,
            created_at: String::new(),
        }]),
        ..report
    }
}

pub fn with_missing(data: &[&str], folders: &[&str]) -> HealthReport {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    HealthReport {
        missing: Some(Missing {
            num_files: (data.len() + folders.len()) as u64,
            data_files: owned(data),
            index_folders: owned(folders),
        }),
        ..healthy()
    }
}
