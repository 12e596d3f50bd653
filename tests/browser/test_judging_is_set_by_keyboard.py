"""An administrator changes the detection settings with the keyboard only: an error appears at its
field, then the settings are saved and previewed."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.regressions.models import BaselineChoice, JudgingChoice
from dashboard.regressions.placebo_preview import previews_compute


def test_an_error_appears_at_its_field_and_the_correction_is_saved(
    sign_in: Callable[[User], Page], user: User, alert: Alert, complaints: list[str]
) -> None:
    page = sign_in(user)
    page.get_by_role("link", name="Settings").click()
    field = page.get_by_label("False-positive rate of ROLL BACK")
    field.focus()
    page.keyboard.type("90")
    page.keyboard.press("Enter")
    expect(page.get_by_label("False-positive rate of ROLL BACK")).to_have_attribute(
        "aria-invalid", "true"
    )
    expect(page.locator(".err")).to_contain_text("expected a number from 0.1 to 20%")
    assert all("400" in complaint for complaint in complaints)
    complaints.clear()

    page.get_by_label("False-positive rate of ROLL BACK").fill("2")
    page.locator("summary", has=page.get_by_role("heading", name="Eager calls")).focus()
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Eager calls").get_by_label("Muted").select_option("yes")
    page.get_by_role("button", name="Backtest on the last 8 days").click()
    expect(page.get_by_role("heading", name="Backtest")).to_be_visible()
    assert not JudgingChoice.objects.exists()
    page.get_by_role("button", name="Save").click()
    expect(
        page.get_by_text("Saved. The change applies to live versions within seconds.")
    ).to_be_visible()
    expect(page.get_by_text("Muted of eager: not set to yes")).to_be_visible()
    assert JudgingChoice.objects.get().values == {"roll_back_alpha": 0.02, "eager.muted": True}


def test_edited_values_are_measured_and_the_result_appears_without_a_reload(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("False-positive rate of WATCH").fill("10")
    page.get_by_role("button", name="Measure error rates").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Measuring.")).to_be_visible()
    expect(page.get_by_label("False-positive rate of WATCH")).to_have_value("10")
    previews_compute(seconds=60.0)
    expect(page.locator("#measured")).to_contain_text("placebo pairs are needed")
    expect(page.locator("#measured")).to_contain_text("False-positive rate of WATCH: 10%")


def test_a_version_is_accepted_with_a_note(
    sign_in: Callable[[User], Page], user: User, alert: Alert
) -> None:
    page = sign_in(user)
    page.goto(page.url + f"models/{alert.deployment.model_id}/versions/")
    page.locator("summary", has_text="Accept").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason", exact=True).fill("More work per call")
    page.get_by_role("button", name="Accept as new baseline").click()
    expect(page.get_by_text("Accepted as new baseline by mara")).to_be_visible()
    expect(page.get_by_text("More work per call")).to_be_visible()
    assert BaselineChoice.objects.get().kind == "accept"
