"""URLs for people: new projects, invitations, members and keys."""

from django.urls import URLPattern, path

from dashboard.ui.pages.account import views as account
from dashboard.ui.pages.account import views_projects as projects
from dashboard.ui.pages.settings.audit import views as audit
from dashboard.ui.pages.settings.data import views as data
from dashboard.ui.pages.settings.keys import views as keys
from dashboard.ui.pages.settings.members import views as members

SETTINGS = "p/<slug:slug>/settings/"

urlpatterns: list[URLPattern] = [
    path("accounts/password/set/", account.no_password, name="account_set_password"),
    path("projects/new/", projects.project_new, name="project_new"),
    path("invitations/<str:token>/", projects.invitation, name="invitation"),
    path(SETTINGS + "members/", members.members, name="members"),
    path(SETTINGS + "members/invite/", members.member_invite, name="member_invite"),
    path(
        SETTINGS + "members/invitations/<int:invitation_id>/revoke/",
        members.member_uninvite,
        name="member_uninvite",
    ),
    path(SETTINGS + "members/leave/", members.member_leave, name="member_leave"),
    path(SETTINGS + "members/<int:user_id>/role/", members.member_role, name="member_role"),
    path(SETTINGS + "members/<int:user_id>/remove/", members.member_end, name="member_end"),
    path(SETTINGS + "keys/", keys.keys, name="keys"),
    path(SETTINGS + "keys/add/", keys.key_add, name="key_add"),
    path(SETTINGS + "keys/<int:key_id>/revoke/", keys.key_remove, name="key_remove"),
    path(SETTINGS + "data/", data.data, name="data"),
    path(SETTINGS + "data/save/", data.data_save, name="data_save"),
    path(SETTINGS + "audit/", audit.audit, name="audit"),
    path(SETTINGS + "audit.csv", audit.audit_csv, name="audit_csv"),
]
