"""Long forms: the tests that `make test` leaves to another target, because a quicker test of the same
behaviour runs there. The markers are those of `LONG_FORMS` in tests/environment.py."""

LONG_TESTS: dict[str, tuple[str, ...]] = {
    "full_only": (
        "faults/test_a_rolling_deploy_loses_nothing.py",
        "faults/test_a_restored_dashboard_gets_its_tail_again.py",
        "dashboard/common/test_only_a_closed_database_is_replaced.py::"
        "test_the_steps_of_the_guide_restore_a_backup",
        "faults/test_a_standby_that_lags_gets_its_tail_again.py::test_the_failover",
        "faults/test_a_killed_postgresql_is_waited_for.py::test_under_load",
        "faults/test_a_poison_report_delays_no_other_report.py",
        "faults/test_a_backup_by_the_guide_can_be_restored.py",
        "faults/test_ranks_that_fall_together_stay_apart.py",
        "faults/test_a_flood_is_refused_alone.py",
        "faults/test_a_database_that_does_not_answer_is_a_503.py::test_a_locked_inbox",
        "faults/test_a_disk_that_keeps_nothing_ends_the_server.py",
        "faults/test_random_faults_lose_and_double_nothing.py::test_a_round[sqlite-1002]",
        "faults/test_random_faults_lose_and_double_nothing.py::test_a_round[postgresql-1001]",
        "faults/test_random_faults_lose_and_double_nothing.py::test_a_round[postgresql-1003]",
        "faults/test_random_faults_lose_and_double_nothing.py::test_a_round[postgresql-1004]",
        "faults/test_a_failure_of_redis_only_slows_the_pipeline.py::"
        "test_a_worker_that_no_longer_takes_tasks_is_restarted",
        "faults/test_a_failure_of_redis_only_slows_the_pipeline.py::"
        "test_a_frozen_worker_stops_no_stage_of_the_others",
        "faults/test_a_failure_of_redis_only_slows_the_pipeline.py::test_redis_fails[stopped]",
        "faults/test_a_clock_that_is_wrong_moves_no_minute.py::test_a_clock_that_is[an hour behind]",
        "faults/test_a_killed_worker_catches_up.py::test_it_catches_up[parents_die]",
        "faults/test_a_broken_connection_counts_nothing_twice.py::test_each_fault_alone[refuse]",
        *(
            "dashboard/fleet/test_a_killed_folder_loses_and_repeats_nothing.py::"
            f"test_killed_at_a_point_and_run_again_counts_once[{point}]"
            for point in ("before_commit-1", "claimed-1", "claimed-3", "committed-3", "upserted-1")
        ),
        "dashboard/fleet/test_a_killed_folder_loses_and_repeats_nothing.py::"
        "test_killed_again_and_again_counts_once",
        *(
            "dashboard/alerts/test_crashes_and_crowds.py::"
            f"test_a_worker_that_dies_while_alerts_are_grouped_loses_nothing[points{number}]"
            for number in (1, 2, 3, 4)
        ),
        "dashboard/alerts/test_crashes_and_crowds.py::test_concurrent_workers_group_alerts_once",
        "dashboard/alerts/test_crashes_and_crowds.py::"
        "test_a_worker_that_dies_loses_nothing[leased-1]",
        "dashboard/alerts/test_a_storm_becomes_few_messages.py::"
        "test_a_thousand_alerts_reach_a_webhook_and_slack_in_a_few_messages",
    ),
    "frameworks_only": (
        "agent/integrations/test_lightning_and_trainer_steps_are_counted.py::"
        "test_the_count_of_steps_is_the_frameworks[Trainer]",
        "agent/integrations/test_lightning_and_trainer_steps_are_counted.py::"
        "test_a_module_that_the_trainer_unwraps_is_a_finding",
        "agent/integrations/test_workers_of_a_dataloader_report.py::"
        "test_workers_count_their_own_calls[spawn-watched]",
        "agent/frameworks/test_torchrun_loses_no_call_when_it_stops.py::"
        "test_a_rank_that_fails_takes_the_other_down",
    ),
    "engines_only": (
        "dashboard/regressions/test_a_rank_that_compiles_another_graph_is_named.py",
        "agent/sources/test_a_folder_that_cannot_be_written_is_reported.py::"
        "test_entries_lost_on_a_full_disk_are_reported_although_the_folder_is_writable",
        "agent/sources/test_a_second_process_hits_the_cache.py::"
        "test_the_first_process_misses_and_the_second_hits",
        *(
            f"agent/sources/test_a_miss_has_a_cause.py::test_the_changed_setting_is_named[{name}]"
            for name in ("option", "sizes")
        ),
        "agent/sources/test_a_miss_has_a_cause.py::test_another_folder_for_triton_is_no_miss",
        "agent/sources/test_the_examples_get_worse_in_a_real_way.py",
        "agent/identity/test_strict_redaction_leaves_only_fingerprints.py::"
        "test_a_real_job_sends_its_counts_and_none_of_its_texts",
        "agent/control/test_ranks_are_switched_at_one_moment.py",
        "agent/sources/test_a_forked_child_inherits_the_eager_fallback.py::"
        "test_calls_of_a_child_count_as_eager",
        "agent/cache_cli/test_cache_misses_are_predicted_before_a_start.py::"
        "test_a_folder_without_the_entries_of_earlier_runs_is_named",
        "dashboard/ui/test_ten_planted_changes_are_each_named.py",
        "agent/cache_cli/test_cache_misses_are_predicted_before_a_start.py::"
        "test_a_changed_variable_that_changes_an_option_is_named_and_the_start_misses_for_it",
        "agent/cache_cli/test_compile_caches_travel_in_a_file.py::"
        "test_a_start_without_a_load_is_cold_and_reports_no_mega_cache",
        "agent/control/test_a_real_job_is_switched_and_back.py::"
        "test_no_call_raises_and_every_result_stays[inductor]",
        "agent/cli/test_the_command_line_answers.py::"
        "test_doctor_reports_whether_another_job_can_sign_commands",
        *(
            "agent/ground_truth/test_the_agent_agrees_with_torchs_own_trace.py::"
            f"test_every_row_agrees_or_is_explained[{program}]"
            for program in (
                "backend_raises",
                "data_parallel",
                "every_way",
                "guards",
                "limit",
                "regional",
                "threads",
                "training_step",
                "unsupported",
            )
        ),
        "agent/numerics/test_a_golden_batch_of_real_models.py::"
        "test_a_healthy_model_passes_and_its_next_version_is_the_same[Qwen2ForCausalLM-dtype2]",
        "agent/numerics/test_a_golden_batch_of_real_models.py::"
        "test_a_healthy_model_passes_and_its_next_version_is_the_same[BertModel-dtype0]",
        *(
            "agent/numerics/test_a_golden_batch_of_real_models.py::"
            f"test_a_planted_fault_is_found_in_the_graph_of_a_real_model[{fault}]"
            for fault in (
                "a dropped residual",
                "a swapped activation",
                "a transposed weight",
                "a wrong custom op",
                "another epsilon",
            )
        ),
        "agent/recording/test_a_cold_start_is_reported_stage_by_stage.py::"
        "test_strict_redaction_keeps_the_stages_and_not_the_names_of_marks",
        "agent/recording/test_a_cold_start_is_reported_stage_by_stage.py::"
        "test_the_rest_of_a_call_after_its_compilation_is_a_stage",
    ),
    "pages_only": (
        *(
            "dashboard/accounts/test_answers_of_a_hostile_provider_are_one_sentence.py::"
            f"test_a_broken_answer_is_one_page_and_one_log_line[{answer}-"
            for answer in (
                "a line break in a token",
                "a list",
                "a number",
                "an empty object",
                "half of JSON",
                "no letters of any alphabet",
                "no type",
                "nothing",
                "nothing at all",
            )
        ),
        "dashboard/accounts/test_answers_of_a_hostile_provider_are_one_sentence.py::"
        "test_an_answer_that_does_not_end_is_cut_off_after_a_bounded_time[ -",
        "dashboard/accounts/test_answers_of_a_hostile_provider_are_one_sentence.py::"
        "test_an_answer_that_does_not_end_is_cut_off_after_a_bounded_time[-",
    ),
}
"""By marker: beginnings of node IDs below tests/. A file or a test includes all its cases; an open
bracket begins the name of a case."""


def find_marker(node: str) -> str | None:
    """The marker of a test that `make test` leaves out, or None. `node` is its pytest node ID."""
    path = node.removeprefix("tests/")
    return next(
        (
            marker
            for marker, entries in LONG_TESTS.items()
            if any(_begins(path, entry) for entry in entries)
        ),
        None,
    )


def _begins(path: str, entry: str) -> bool:
    whole = path == entry or path.startswith((f"{entry}[", f"{entry}::"))
    return whole or ("[" in entry and not entry.endswith("]") and path.startswith(entry))
