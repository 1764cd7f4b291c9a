"""Which parts make up this Forge CI, and how is each configured? What an operator may change has a variable."""

import os
from datetime import timedelta
from pathlib import Path

import environ

from forge.counts import given_count
from forge.postgres import embedded_database, given_database
from forge.secret_key import load_secret_key

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent

# Where everything that is not in the database lives: repositories, blobs, the embedded database.
DATA_DIR = Path(env.str("FORGE_DATA", default=str(BASE_DIR / "data"))).resolve()

DEBUG = env.bool("FORGE_DEBUG", default=False)
SECRET_KEY = env.str("FORGE_SECRET_KEY", default="") or load_secret_key(DATA_DIR)
# Newest first: the first key encrypts, all of them decrypt. Empty: derived from SECRET_KEY.
SECRETS_KEYS = env.list("FORGE_SECRETS_KEYS", default=[])
ALLOWED_HOSTS = env.list("FORGE_ALLOWED_HOSTS", default=["localhost", ".localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("FORGE_TRUSTED_ORIGINS", default=[])
# What runners, clones and links in push output are told to use.
SERVER_URL = env.str("FORGE_URL", default="http://127.0.0.1:8000").rstrip("/")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "axes",
    "csp",
    "django_filters",
    "django_htmx",
    "ci.apps.CiConfig",  # before django_q: its command qcluster wins
    "django_q",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
    "forge.apps.ForgeConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "forge.urls"
ASGI_APPLICATION = "forge.asgi.application"
WSGI_APPLICATION = "forge.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# Without DATABASE_URL the embedded server of DATA_DIR is meant; `manage.py up` starts it.
DATABASES = {"default": given_database(os.environ.get("DATABASE_URL")) or embedded_database(DATA_DIR)}
DATABASES["default"]["CONN_MAX_AGE"] = env.int("FORGE_CONN_MAX_AGE", default=60)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# An old snapshot slows every claim down: whoever forgets a transaction loses it.
DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 10)
DATABASES["default"]["OPTIONS"]["options"] = (
    "-c idle_in_transaction_session_timeout=60000 -c lock_timeout=20000 -c statement_timeout=60000"
    # What was answered is on the disk, also where the server's own default is another.
    " -c synchronous_commit=on"
)
# Each part of the product calls itself more exactly: forge.session_names.
DATABASES["default"]["OPTIONS"]["application_name"] = "forge"
# A transaction that has been open for longer is named on the health page and in the log of `watch`.
LONG_TRANSACTION_SECONDS = env.float("FORGE_LONG_TRANSACTION_SECONDS", default=10)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
AXES_FAILURE_LIMIT = env.int("FORGE_LOGIN_FAILURES", default=10)
AXES_COOLOFF_TIME = timedelta(minutes=env.int("FORGE_LOGIN_COOLOFF_MINUTES", default=15))
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"
AXES_RESET_ON_SUCCESS = True
AXES_ENABLE_ACCESS_FAILURE_LOG = False
AXES_IPWARE_PROXY_COUNT = env.int("FORGE_PROXIES", default=0)

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SERVER_URL.startswith("https://")
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("FORGE_BEHIND_TLS_PROXY", default=False) else None
)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    },
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
# Served straight from the packages and the apps, so that starting needs no collectstatic.
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 300
# Where logs, artifacts and caches lie: below DATA_DIR, or in a bucket of S3 or of what speaks its protocol. Without
# keys those of the environment (AWS_…) or of the machine's role count.
S3_BUCKET = env.str("FORGE_S3_BUCKET", default="")
_DISK = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": DATA_DIR / "blobs"}}
_BUCKET = {
    "BACKEND": "ci.storage.s3.S3",
    "OPTIONS": {
        "bucket": S3_BUCKET,
        "endpoint": env.str("FORGE_S3_ENDPOINT", default=""),
        "region": env.str("FORGE_S3_REGION", default=""),
        "access_key": env.str("FORGE_S3_ACCESS_KEY", default=""),
        "secret_key": env.str("FORGE_S3_SECRET_KEY", default=""),
    },
}
STORAGES = {
    "default": _BUCKET if S3_BUCKET else _DISK,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# One block of an upload, and all of one artifact or cache, in bytes.
BLOB_PART_BYTES = env.int("FORGE_BLOB_PART_BYTES", default=256 * 1024**2)
BLOB_BYTES = env.int("FORGE_ARTIFACT_BYTES", default=10 * 1024**3)
# So many uploads, and so many downloads, at once in each server process.
BLOB_TRANSFERS = env.int("FORGE_BLOB_TRANSFERS", default=128)
# What the artifacts of one repository may take together, in bytes.
ARTIFACT_QUOTA_BYTES = env.int("FORGE_ARTIFACT_QUOTA_BYTES", default=50 * 1024**3)
# How long artifacts are kept where neither their repository nor, up to that, their workflow says so.
ARTIFACT_DAYS = env.int("FORGE_ARTIFACT_DAYS", default=90)
# What the caches of one repository may take together, in bytes, where it has no quota of its own; and how long a cache
# stays that nobody uses.
CACHE_BYTES = env.int("FORGE_CACHE_BYTES", default=10 * 1024**3)
CACHE_DAYS = env.int("FORGE_CACHE_DAYS", default=7)
DATA_UPLOAD_MAX_MEMORY_SIZE = 12 * 1024 * 1024  # one log batch of the runner API at its limit
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "ci.api.authentication.AccessTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticatedOrReadOnly"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["ci.api.parsers.ObjectParser"],
    "DEFAULT_PAGINATION_CLASS": "ci.api.pagination.Pages",
    "PAGE_SIZE": 30,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "ci.api.errors.exception_handler",
    "DEFAULT_THROTTLE_RATES": {"anonymous": "600/min"},
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Forge CI",
    "DESCRIPTION": "The runner API v1 and the owners' REST API.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "ConclusionEnum": "ci.models.choices.Conclusion",
        "RunnerSetPhaseEnum": "ci.models.RunnerSet.Phase",
        "ReportedConclusionEnum": "ci.api.runner.serializers.REPORTED",
        **{
            f"{name}Enum": f"ci.models.choices.{name}"
            for name in (
                "CancelReason",
                "DeploymentState",
                "JobState",
                "RunConclusion",
                "RunState",
                "RunnerPhase",
                "StepState",
            )
        },
    },
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "ci.api.schema.add_raw_routes"],
}

# None: `manage.py up` chooses from the machine (ci.management.sizes).
WEB_PROCESSES = given_count("FORGE_WEB_PROCESSES", most=64)
WEB_THREADS = given_count("FORGE_WEB_THREADS", most=256)
TASK_WORKERS = given_count("FORGE_TASK_WORKERS", most=64)

Q_CLUSTER = {
    "name": "forge",
    "orm": "default",
    "workers": TASK_WORKERS or 2,
    "timeout": 60,
    "retry": 300,
    # A task that failed stays queued, for what stopped it may pass: a database that was away for a moment.
    "max_attempts": 3,
    "ack_failures": False,
    "poll": 0.2,
    "bulk": 5,
    "queue_limit": 10,
    "save_limit": -1,
    "catch_up": False,
    "label": "Tasks",
}
if env.str("FORGE_REDIS_URL", default=""):
    del Q_CLUSTER["orm"]
    Q_CLUSTER["redis"] = env.str("FORGE_REDIS_URL")

# The forge knows CI only by these names, so that it can be read, tested and run without it.
PUSH_TASK = "ci.lifecycle.tasks.plan_push"
PUSH_REPORT = "ci.lifecycle.pushes.report"
DEFAULT_BRANCH_TASK = "ci.lifecycle.tasks.remember_default_branch"
GIT_TOKEN_ACTORS = {"frj_": "ci.lifecycle.tokens.actor_of_job_token"}
COMMIT_STATES = "ci.lifecycle.commit_states.states_of_commits"
# What is wrong with the template of a runner set, asked of its launcher: ci.lifecycle knows the launchers only by this.
SCALE_CHECK_TEMPLATE = "ci.scaling.launchers.check_template"

# Git
GIT_MAX_PUSH_BYTES = env.int("FORGE_MAX_PUSH_BYTES", default=4 * 1024**3)
GIT_TIMEOUT_SECONDS = env.int("FORGE_GIT_TIMEOUT", default=3600)
# At once in each server process: so many fetches, and so many pushes.
GIT_PROCESSES = env.int("FORGE_GIT_PROCESSES", default=32)

# Deadlines of the lifecycle, in seconds.
ACKNOWLEDGE_SECONDS = env.int("FORGE_ACKNOWLEDGE_SECONDS", default=30)
HEARTBEAT_SECONDS = env.int("FORGE_HEARTBEAT_SECONDS", default=60)
CANCEL_GRACE_SECONDS = env.int("FORGE_CANCEL_GRACE_SECONDS", default=300)
# Polls are woken when a job is queued; should that fail, they find it this much later on average.
SWEEP_SECONDS = env.float("FORGE_SWEEP_SECONDS", default=5.0)
# Of jobs without timeout-minutes; GitHub's.
JOB_TIMEOUT_MINUTES = env.float("FORGE_JOB_TIMEOUT_MINUTES", default=360)
QUEUE_SECONDS = env.int("FORGE_QUEUE_SECONDS", default=24 * 3600)
# GitHub's limit for a run with all that it waits for.
RUN_SECONDS = env.int("FORGE_RUN_SECONDS", default=35 * 86400)
LOG_LIMIT_BYTES = env.int("FORGE_LOG_LIMIT_BYTES", default=64 * 1024 * 1024)
LOG_LIMIT_LINES = env.int("FORGE_LOG_LIMIT_LINES", default=2_000_000)
# A log is sealed this long after its job ended at the latest; until then late lines are accepted.
LOG_SEAL_SECONDS = env.int("FORGE_LOG_SEAL_SECONDS", default=60)

# Runner sets, in seconds. An idle runner beyond need goes after the calm time.
SCALE_CALM_SECONDS = env.float("FORGE_SCALE_CALM_SECONDS", default=60)
# A call that starts a process has ended after this long, whatever came of it.
SCALE_START_SECONDS = env.float("FORGE_SCALE_START_SECONDS", default=35)
# Started processes ask for a job within the boot time, and then again and again.
SCALE_BOOT_SECONDS = env.float("FORGE_SCALE_BOOT_SECONDS", default=300)
SCALE_SILENT_SECONDS = env.float("FORGE_SCALE_SILENT_SECONDS", default=180)
# A process whose job is over may take this long to end by itself; told to go, this long before it is forced; and
# after the clean-up time its place is given away.
SCALE_EXIT_SECONDS = env.float("FORGE_SCALE_EXIT_SECONDS", default=30)
SCALE_STOP_SECONDS = env.float("FORGE_SCALE_STOP_SECONDS", default=30)
SCALE_CLEANUP_SECONDS = env.float("FORGE_SCALE_CLEANUP_SECONDS", default=600)
# A runner that could not be started for want of room is replaced after this long.
SCALE_QUOTA_SECONDS = env.float("FORGE_SCALE_QUOTA_SECONDS", default=600)
# More than five failures within the window are trouble: then one launch at a time, and a pause after each failure.
SCALE_TROUBLE_WINDOW_SECONDS = env.float("FORGE_SCALE_TROUBLE_WINDOW_SECONDS", default=600)
SCALE_TROUBLE_PAUSE_SECONDS = env.float("FORGE_SCALE_TROUBLE_PAUSE_SECONDS", default=80)
# A runner of a set whose version is older parks its set, as one that ends with exit code 7; empty: all may work.
OLDEST_RUNNER = env.str("FORGE_OLDEST_RUNNER", default="")
# What runner processes on other machines call; those of this machine may have a nearer address.
SCALE_URL = env.str("FORGE_SCALE_URL", default="") or SERVER_URL
SCALE_LOCAL_URL = env.str("FORGE_SCALE_LOCAL_URL", default="") or SCALE_URL
# Where containers start: a socket of Docker or Podman; without it DOCKER_HOST, or Docker's usual one.
SCALE_DOCKER_HOST = env.str("FORGE_SCALE_DOCKER_HOST", default="")
# Where Pods start: without a file, the cluster this runs in or the default kubeconfig. The first namespace is usual.
SCALE_KUBECONFIG = env.str("FORGE_SCALE_KUBECONFIG", default="")
SCALE_KUBERNETES_CONTEXT = env.str("FORGE_SCALE_KUBERNETES_CONTEXT", default="")
SCALE_KUBERNETES_NAMESPACES = env.list("FORGE_SCALE_KUBERNETES_NAMESPACES", default=["default"])
# Whether templates of sets may reach beyond their own container: mounts, other networks, secrets, privileges.
SCALE_TRUSTED_TEMPLATES = env.bool("FORGE_SCALE_TRUSTED_TEMPLATES", default=False)
# Tells the processes of this installation from those of another one on the same engine; never change it.
INSTALLATION = env.str("FORGE_INSTALLATION", default="")
# How often the processes of a set are looked at, and every set is scaled whatever it was told.
SCALE_POLL_SECONDS = env.float("FORGE_SCALE_POLL_SECONDS", default=2)
SCALE_SWEEP_SECONDS = env.float("FORGE_SCALE_SWEEP_SECONDS", default=10)
# Runners that are gone, and the points of the chart, are kept this long.
SCALE_KEEP_SECONDS = env.float("FORGE_SCALE_KEEP_SECONDS", default=86400)

# Who sends this as bearer token may read /metrics; without it only administrators may.
METRICS_TOKEN = env.str("FORGE_METRICS_TOKEN", default="")
# So many runner sets, the oldest, have series; and of each so many repositories, if jobs shall be told apart by them.
METRICS_SETS = env.int("FORGE_METRICS_SETS", default=100)
METRICS_REPOSITORIES = env.int("FORGE_METRICS_REPOSITORIES", default=0)

# Where runners look for `uses: owner/repo@ref` after this forge itself.
ACTIONS_SOURCES = env.list("FORGE_ACTIONS_SOURCES", default=["https://github.com"])

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.str("FORGE_LOG_LEVEL", default="INFO")},
    "loggers": {"axes": {"level": "WARNING"}, "httpx": {"level": "WARNING"}},
}
