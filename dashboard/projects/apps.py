"""Django's entry for this app."""

from django.apps import AppConfig


class ProjectsConfig(AppConfig):
    """Projects, their members and keys; the one door in front of every query."""

    name = "dashboard.projects"
    label = "projects"
