"""URLs of the pages."""

from django.urls import URLPattern, path

from dashboard.ui.pages.account import views as account
from dashboard.ui.pages.account import views_home as home
from dashboard.ui.pages.alerts import views as alerts
from dashboard.ui.pages.alerts import views_exports as alert_exports
from dashboard.ui.pages.alerts import views_list as alert_list
from dashboard.ui.pages.alerts import views_quality as alert_quality
from dashboard.ui.pages.compare import views as compare
from dashboard.ui.pages.compile_cost import views as cost
from dashboard.ui.pages.compiles import views as compiles
from dashboard.ui.pages.findings import views as findings
from dashboard.ui.pages.fleet import views as fleet
from dashboard.ui.pages.fleet import views_exports as fleet_exports
from dashboard.ui.pages.fleet import views_saved as fleet_views
from dashboard.ui.pages.health import views as health
from dashboard.ui.pages.help import views as help
from dashboard.ui.pages.instances import views_detail as instance
from dashboard.ui.pages.instances import views_list as instances
from dashboard.ui.pages.kill_switch import views as kill_switch
from dashboard.ui.pages.latency import views as latency
from dashboard.ui.pages.model import views as model
from dashboard.ui.pages.model import views_baseline as baseline
from dashboard.ui.pages.model import views_findings as model_findings
from dashboard.ui.pages.model import views_versions as versions
from dashboard.ui.pages.period_comparison import views_fleet as fleet_period_comparison
from dashboard.ui.pages.period_comparison import views_model as period_comparison
from dashboard.ui.pages.ranks import views as ranks
from dashboard.ui.pages.search import views as search
from dashboard.ui.pages.settings.detection import views as judging
from dashboard.ui.pages.settings.notifications import views as rules
from dashboard.ui.pages.settings.notifications import views_channels as channels
from dashboard.ui.pages.settings.runbooks import views as runbooks
from dashboard.ui.pages.setup import views as setup
from dashboard.ui.pages.startup import views as startup
from dashboard.ui.pages.startup import views_budgets as budgets
from dashboard.ui.pages.version import views as version

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("favicon.ico", home.favicon, name="favicon"),
    path("account/theme/", account.theme, name="theme"),
    path("numbers/", help.glossary, name="numbers"),
    path("help/", help.help_index, name="help"),
    path("help/<path:document>/", help.help_document, name="help_document"),
    path("ui/components", help.components, name="components"),
    path("health/", health.health_home, name="health_home"),
    path("p/<slug:slug>/health/", health.health, name="health"),
    path("p/<slug:slug>/", fleet.fleet, name="fleet"),
    path("p/<slug:slug>/views/save/", fleet_views.save_view, name="fleet_view_save"),
    path("p/<slug:slug>/views/delete/", fleet_views.delete_view, name="fleet_view_delete"),
    path("p/<slug:slug>/fleet.json", fleet_exports.fleet_json, name="fleet_json"),
    path("p/<slug:slug>/fleet.csv", fleet_exports.fleet_csv, name="fleet_csv"),
    path(
        "p/<slug:slug>/weeks/", fleet_period_comparison.fleet_period_comparison, name="fleet_weeks"
    ),
    path(
        "p/<slug:slug>/weeks.json",
        fleet_period_comparison.fleet_period_comparison_json,
        name="fleet_weeks_json",
    ),
    path(
        "p/<slug:slug>/weeks.csv",
        fleet_period_comparison.fleet_period_comparison_csv,
        name="fleet_weeks_csv",
    ),
    path("p/<slug:slug>/compile-cost/", cost.compile_cost, name="compile_cost"),
    path("p/<slug:slug>/compile-cost.json", cost.compile_cost_json, name="compile_cost_json"),
    path("p/<slug:slug>/compile-cost.csv", cost.compile_cost_csv, name="compile_cost_csv"),
    path("p/<slug:slug>/compile-cost/price/", cost.compile_cost_price, name="compile_cost_price"),
    path("p/<slug:slug>/search/", search.search, name="search"),
    path("p/<slug:slug>/findings/", findings.findings, name="findings"),
    path("p/<slug:slug>/findings.json", findings.findings_json, name="findings_json"),
    path("p/<slug:slug>/findings.csv", findings.findings_csv, name="findings_csv"),
    path("p/<slug:slug>/findings/<int:finding_id>/", findings.finding, name="finding"),
    path(
        "p/<slug:slug>/findings/<int:finding_id>.json", findings.finding_json, name="finding_json"
    ),
    path("p/<slug:slug>/findings/<int:finding_id>.csv", findings.finding_csv, name="finding_csv"),
    path("p/<slug:slug>/models/<int:model_id>/", model.model, name="model"),
    path("p/<slug:slug>/models/<int:model_id>.json", model.model_json, name="model_json"),
    path("p/<slug:slug>/models/<int:model_id>.csv", model.model_csv, name="model_csv"),
    path("p/<slug:slug>/models/<int:model_id>/numbers/", model.model_numbers, name="model_numbers"),
    path("p/<slug:slug>/models/<int:model_id>/versions/", versions.versions, name="model_versions"),
    path(
        "p/<slug:slug>/models/<int:model_id>/findings/",
        model_findings.model_findings,
        name="model_findings",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/weeks/",
        period_comparison.period_comparison,
        name="model_periods",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/weeks.json",
        period_comparison.period_comparison_json,
        name="model_periods_json",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/weeks.csv",
        period_comparison.period_comparison_csv,
        name="model_periods_csv",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/baseline/", baseline.baseline_set, name="baseline_set"
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/baseline/<int:choice_id>/end/",
        baseline.baseline_end,
        name="baseline_end",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/latency.json",
        latency.latency_map,
        name="latency_map",
    ),
    path("p/<slug:slug>/models/<int:model_id>/breakdown.json", latency.breakdown, name="breakdown"),
    path(
        "p/<slug:slug>/models/<int:model_id>/baseline/<int:choice_id>/undo/",
        baseline.baseline_undo,
        name="baseline_undo",
    ),
    path("p/<slug:slug>/models/<int:model_id>/compare", compare.compare, name="compare"),
    path(
        "p/<slug:slug>/models/<int:model_id>/compare.json",
        compare.compare_json,
        name="compare_json",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/compare.csv", compare.compare_csv, name="compare_csv"
    ),
    path("p/<slug:slug>/models/<int:model_id>/instances/", instances.instances, name="instances"),
    path(
        "p/<slug:slug>/models/<int:model_id>/instances.json",
        instances.instances_json,
        name="instances_json",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/instances.csv",
        instances.instances_csv,
        name="instances_csv",
    ),
    path("p/<slug:slug>/models/<int:model_id>/ranks/", ranks.ranks, name="ranks"),
    path("p/<slug:slug>/models/<int:model_id>/compiles/", compiles.compiles, name="model_compiles"),
    path("p/<slug:slug>/models/<int:model_id>/startup/", startup.startup, name="model_startup"),
    path("p/<slug:slug>/models/<int:model_id>/ranks.json", ranks.ranks_json, name="ranks_json"),
    path("p/<slug:slug>/models/<int:model_id>/ranks.csv", ranks.ranks_csv, name="ranks_csv"),
    path(
        "p/<slug:slug>/models/<int:model_id>/instances/<slug:instance_id>/",
        instance.instance,
        name="instance",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/instances/<slug:instance_id>.json",
        instance.instance_json,
        name="instance_json",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/instances/<slug:instance_id>.csv",
        instance.instance_csv,
        name="instance_csv",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/versions/<int:version_id>/",
        version.version,
        name="version",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/versions/<int:version_id>.json",
        version.version_as_json,
        name="version_json",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/versions/<int:version_id>.csv",
        version.version_as_csv,
        name="version_csv",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/versions/<int:version_id>/budgets/",
        budgets.version_budgets,
        name="version_budgets",
    ),
    path("p/<slug:slug>/models/<int:model_id>/switch/", kill_switch.kill_switch, name="switch"),
    path(
        "p/<slug:slug>/models/<int:model_id>/switch/begin/",
        kill_switch.kill_switch_start,
        name="switch_make",
    ),
    path(
        "p/<slug:slug>/models/<int:model_id>/switch/<int:switch_id>/end/",
        kill_switch.kill_switch_stop,
        name="switch_stop",
    ),
    path("p/<slug:slug>/alerts/", alert_list.alerts, name="alerts"),
    path("p/<slug:slug>/alerts/act/", alert_list.alerts_act, name="alerts_act"),
    path("p/<slug:slug>/alerts.json", alert_exports.alerts_json, name="alerts_json"),
    path("p/<slug:slug>/alerts.csv", alert_exports.alerts_csv, name="alerts_csv"),
    path("p/<slug:slug>/alerts/grades.json", alert_exports.alert_quality_json, name="grades_json"),
    path("p/<slug:slug>/alerts/grades.csv", alert_exports.alert_quality_csv, name="grades_csv"),
    path(
        "p/<slug:slug>/alerts/grades/deployments.csv",
        alert_exports.deployment_quality_csv,
        name="grades_deployments_csv",
    ),
    path("p/<slug:slug>/alerts/grades/", alert_quality.alert_quality, name="alert_grades"),
    path("p/<slug:slug>/alerts/<int:number>/", alerts.alert, name="alert"),
    path("p/<slug:slug>/alerts/<int:number>/<slug:action>/", alerts.alert_act, name="alert_act"),
    path("p/<slug:slug>/settings/judging/", judging.detection, name="judging"),
    path("p/<slug:slug>/settings/judging/save/", judging.detection_save, name="judging_save"),
    path("p/<slug:slug>/settings/judging/try/", judging.detection_backtest, name="judging_try"),
    path(
        "p/<slug:slug>/settings/judging/try/state/",
        judging.detection_backtest_state,
        name="judging_try_state",
    ),
    path(
        "p/<slug:slug>/settings/judging/measure/", judging.detection_measure, name="judging_measure"
    ),
    path(
        "p/<slug:slug>/settings/judging/measured/",
        judging.detection_measured,
        name="judging_measured",
    ),
    path("p/<slug:slug>/settings/messages/", rules.rules, name="rules"),
    path("p/<slug:slug>/settings/messages/rules/add/", rules.rule_make, name="rule_make"),
    path(
        "p/<slug:slug>/settings/messages/rules/<int:rule_id>/remove/",
        rules.rule_end,
        name="rule_end",
    ),
    path("p/<slug:slug>/settings/messages/zone/", rules.rule_zone, name="rule_zone"),
    path(
        "p/<slug:slug>/settings/messages/maintenance/add/",
        rules.maintenance_make,
        name="maintenance_make",
    ),
    path(
        "p/<slug:slug>/settings/messages/maintenance/<int:window_id>/end/",
        rules.maintenance_stop,
        name="maintenance_stop",
    ),
    path(
        "p/<slug:slug>/settings/messages/<int:delivery_id>/replay/",
        rules.message_redeliver,
        name="rule_replay",
    ),
    path(
        "p/<slug:slug>/settings/messages/channels/<int:channel_id>/replay/",
        rules.channel_redeliver,
        name="rule_replay_all",
    ),
    path("p/<slug:slug>/settings/messages/channels/", channels.channels, name="channels"),
    path(
        "p/<slug:slug>/settings/messages/channels/add/",
        channels.channel_make,
        name="channel_make",
    ),
    path(
        "p/<slug:slug>/settings/messages/channels/<int:channel_id>/<slug:action>/",
        channels.channel_act,
        name="channel_act",
    ),
    path("p/<slug:slug>/settings/guides/", runbooks.runbooks, name="guides"),
    path("p/<slug:slug>/settings/guides/save/", runbooks.runbook_save, name="guide_save"),
    path("p/<slug:slug>/setup/", setup.setup, name="setup"),
    path("p/<slug:slug>/setup/arrival/", setup.setup_arrival, name="setup_arrival"),
    path("p/<slug:slug>/setup/keys/", setup.setup_keys, name="setup_keys"),
    path("p/<slug:slug>/setup/command-key/", kill_switch.command_key_new, name="command_key_new"),
    path("p/<slug:slug>/setup/keys/add/", setup.key_make, name="key_make"),
]
