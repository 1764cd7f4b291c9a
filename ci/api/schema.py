"""What does OpenAPI say beyond the DRF views?"""


def add_raw_routes(result, generator, request, public):
    return result
