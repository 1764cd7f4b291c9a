"""Do browsers find the icon where they look for it on their own?"""

from django.contrib.staticfiles import finders
from django.test import Client


def test_the_usual_address_leads_to_the_icon(db):
    answer = Client().get("/favicon.ico")
    assert answer.status_code == 302
    assert finders.find(answer["Location"].removeprefix("/static/"))
