"""The Compare page."""
from django.http import HttpResponse
from dashboard.ui.door import ProjectRequest, project_page


@project_page()
def compare(request: ProjectRequest, model_id: int) -> HttpResponse:
    return HttpResponse("x")


compare_json = compare_csv = compare
