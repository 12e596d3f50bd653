"""App configuration of projects."""

from django.apps import AppConfig


class ProjectsConfig(AppConfig):
    """Projects, their members and keys, and the access check of every query."""

    name = "dashboard.projects"
    label = "projects"
