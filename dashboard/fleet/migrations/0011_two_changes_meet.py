"""Two changes were made beside each other; they touch different tables."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0009_what_ci_tells"),
        ("fleet", "0010_environments_have_a_limit"),
    ]

    operations: list[migrations.operations.base.Operation] = []
