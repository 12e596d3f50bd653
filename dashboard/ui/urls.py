"""Every address of the pages."""

from django.urls import URLPattern, path

from dashboard.ui.views import account, alerts, baseline, compare, fleet, grades, health, home, judging, model, rules, setup

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("favicon.ico", home.favicon, name="favicon"),
    path("account/theme/", account.theme, name="theme"),
    path("health/", health.health_home, name="health_home"),
    path("p/<slug:slug>/health/", health.health, name="health"),
    path("p/<slug:slug>/", fleet.fleet, name="fleet"),
    path("p/<slug:slug>/models/<int:model_id>/", model.model, name="model"),
    path("p/<slug:slug>/models/<int:model_id>.json", model.model_json, name="model_json"),
    path("p/<slug:slug>/models/<int:model_id>.csv", model.model_csv, name="model_csv"),
    path("p/<slug:slug>/models/<int:model_id>/baseline/", baseline.baseline_set, name="baseline_set"),
    path("p/<slug:slug>/models/<int:model_id>/baseline/<int:choice_id>/end/", baseline.baseline_end, name="baseline_end"),
    path("p/<slug:slug>/models/<int:model_id>/compare", compare.compare, name="compare"),
    path("p/<slug:slug>/models/<int:model_id>/compare.json", compare.compare_json, name="compare_json"),
    path("p/<slug:slug>/models/<int:model_id>/compare.csv", compare.compare_csv, name="compare_csv"),
    path("p/<slug:slug>/alerts/", alerts.alerts, name="alerts"),
    path("p/<slug:slug>/alerts/grades/", grades.grades, name="alert_grades"),
    path("p/<slug:slug>/alerts/<int:number>/", alerts.alert, name="alert"),
    path("p/<slug:slug>/alerts/<int:number>/<slug:action>/", alerts.alert_act, name="alert_act"),
    path("p/<slug:slug>/settings/judging/", judging.judging, name="judging"),
    path("p/<slug:slug>/settings/judging/save/", judging.judging_save, name="judging_save"),
    path("p/<slug:slug>/settings/judging/try/", judging.judging_try, name="judging_try"),
    path("p/<slug:slug>/settings/messages/", rules.rules, name="rules"),
    path("p/<slug:slug>/settings/messages/rules/add/", rules.rule_make, name="rule_make"),
    path("p/<slug:slug>/settings/messages/rules/<int:rule_id>/remove/", rules.rule_end, name="rule_end"),
    path("p/<slug:slug>/settings/messages/zone/", rules.rule_zone, name="rule_zone"),
    path("p/<slug:slug>/settings/messages/maintenance/add/", rules.maintenance_make, name="maintenance_make"),
    path("p/<slug:slug>/settings/messages/maintenance/<int:window_id>/end/", rules.maintenance_stop, name="maintenance_stop"),
    path("p/<slug:slug>/settings/messages/<int:delivery_id>/replay/", rules.rule_replay, name="rule_replay"),
    path("p/<slug:slug>/setup/", setup.setup, name="setup"),
    path("p/<slug:slug>/setup/arrival/", setup.setup_arrival, name="setup_arrival"),
    path("p/<slug:slug>/setup/channels/", setup.setup_channels, name="setup_channels"),
    path("p/<slug:slug>/setup/channels/add/", setup.channel_make, name="channel_make"),
    path("p/<slug:slug>/setup/channels/<int:channel_id>/<slug:action>/", setup.channel_act, name="channel_act"),
    path("p/<slug:slug>/setup/keys/add/", setup.key_make, name="key_make"),
    path("p/<slug:slug>/setup/keys/<int:key_id>/revoke/", setup.key_end, name="key_end"),
]
