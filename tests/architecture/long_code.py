"""Length exceptions: files and functions that exceed the limits since the format has 100 columns.

Split them when you change them, and remove their line here."""

REASON = "longer since the format has 100 columns"
FILES = ("tests/image/test_the_manifests_fit_together.py",)
FUNCTIONS = {
    "dashboard/alerts/correlation.py": ("cluster_alarms",),
    "dashboard/alerts/kill_switch/services.py": (
        "_issue",
        "kill_switch_begin",
    ),
    "dashboard/alerts/payloads.py": ("build_alert_payload",),
    "dashboard/alerts/services/merge_groups.py": ("groups_merge",),
    "dashboard/alerts/services/rules.py": ("maintenance_add",),
    "dashboard/regressions/evidence_reader.py": ("read_change",),
    "dashboard/ui/charts/trends.py": ("build_trends",),
    "dashboard/ui/pages/alerts/timeline.py": ("_sent",),
    "dashboard/ui/pages/instances/detail.py": ("_sentence",),
    "dashboard/ui/pages/startup/payback.py": ("_ledger",),
    "dashboard/ui/pages/model/versions_table.py": (
        "_cell",
        "version_rows",
    ),
    "dashboard/ui/pages/compare/queries.py": ("_read_data",),
    "dashboard/ui/pages/health/queries.py": ("read_health_data",),
    "dashboard/ui/pages/instances/queries.py": ("read_instances_data",),
    "dashboard/ui/pages/kill_switch/queries.py": ("read_kill_switch_data",),
    "dashboard/ui/pages/search/queries.py": ("project_search",),
    "dashboard/ui/pages/setup/snippets.py": ("snippets",),
    "dashboard/ui/pages/help/views.py": ("components",),
    "tests/agent/sources/test_ranks_without_a_graph_are_eager.py": (
        "test_each_rank_reports_that_its_calls_met_no_graph",
    ),
    "tests/bench/bench_alert_delay.py": ("run",),
    "tests/bench/bench_fairness.py": ("run",),
    "tests/bench/bench_flood.py": ("main",),
    "tests/bench/bench_mlflow.py": ("start",),
    "tests/bench/bench_pages.py": ("rows_made",),
    "tests/bench/bench_wrk.py": ("run",),
    "tests/bench/page_browser.py": ("opened",),
    "tests/bench/upgrade_load.py": ("writes",),
    "tests/browser/test_everything_works_under_a_path.py": ("test_under_a_path",),
    "tests/dashboard/fleet/test_a_process_counts_from_its_first_call.py": (
        "test_late_and_regrouped_reports_count_the_same",
    ),
    "tests/dashboard/fleet/test_beyond_a_limit_totals_stay_exact.py": (
        "test_totals_with_limits_are_totals_without",
    ),
    "tests/dashboard/fleet/test_names_show_what_they_hold.py": (
        "test_pages_and_messages_show_every_character_of_a_name",
    ),
    "tests/dashboard/regressions/test_sampled_calls_ask_for_watch_at_most.py": (
        "test_reported_samples_become_a_verdict",
    ),
    "tests/dashboard/serving/test_a_slow_body_ends_at_its_deadline.py": ("asked",),
    "tests/dashboard/ui/charts_factory.py": (
        "_calls",
        "_instance",
    ),
    "tests/dashboard/ui/stories.py": (
        "alert",
        "fleet",
    ),
    "tests/dashboard/ui/test_a_finding_shows_the_variation_of_its_values.py": (
        "test_pages_files_and_the_api_show_them",
    ),
    "tests/dashboard/ui/test_a_cache_shows_its_misses_with_reasons.py": (
        "test_each_cache_counts_its_answers_and_their_seconds",
    ),
    "tests/dashboard/ui/test_ten_planted_changes_are_each_named.py": (
        "test_ten_of_ten_changes_are_named_with_their_origin",
    ),
    "tests/dashboard/ui/weeks_story.py": ("weeks",),
    "tests/demo/test_the_demo_shows_a_regression_without_an_action.py": (
        "test_the_alert_opens_automatically_and_a_second_start_continues",
    ),
    "tests/faults/job.py": (
        "main",
        "options",
    ),
    "tests/faults/jobs.py": ("start",),
    "tests/faults/line.py": ("check",),
    "tests/faults/test_a_standby_that_lags_gets_its_tail_again.py": ("test_the_failover",),
    "tests/flow/reverse_proxy.py": ("_server_of",),
    "tests/flow/test_a_recording_from_a_gpu_is_replayed.py": (
        "test_a_recording_from_a_gpu_is_replayed",
    ),
    "tests/flow/test_a_server_of_the_first_release_takes_what_agents_send_now.py": (
        "test_every_report_is_accepted_and_folded",
    ),
    "tests/gpu/payback.py": ("__init__",),
    "tests/gpu/programs/golden_models.py": ("main",),
    "tests/gpu/record_pairs.py": ("main",),
    "tests/gpu/step.py": ("main",),
    "tests/gpu/test_ranks_report_as_one_job.py": (
        "test_a_rank_with_a_cold_cache_differs_from_the_warm_ranks",
    ),
    "tests/image/__main__.py": ("clone_check",),
}
