#!/bin/sh
# Makes .venv from requirements-dev.lock, and does nothing when it is already what the lock says.
# Needs a Python from 3.11 on with its venv module, and nothing else. PYTHON=... names the one to take.
set -eu
cd "$(dirname "$0")/.."
venv=.venv

fits() { # a shim of a version manager exists also for versions that it does not run, so each candidate is run
	"$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
	for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
		if fits "$candidate"; then
			"$candidate" -c 'import sys; print(sys.executable)'
			return 0
		fi
	done
	if [ -n "${PYTHON:-}" ]; then
		echo "setup: PYTHON=$PYTHON can't be used: it must run, be Python 3.11 or newer, and have the modules venv and ensurepip." >&2
	else
		echo "setup: no Python 3.11 or newer with the modules venv and ensurepip was found (tried python3.13, python3.12, python3.11, python3, python)." >&2
	fi
	echo "setup: install one (on Debian and Ubuntu: apt-get install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3" >&2
	return 1
}

# One set-up at a time: two make commands in a fresh clone would write into one .venv.
mkdir -p .cache
if command -v flock >/dev/null 2>&1; then
	exec 9>.cache/setup.lock
	flock 9
fi

packages="$(cksum <requirements-dev.lock)"
project="$(cksum <pyproject.toml)"

ready() { # the packages of this lock file are there, in a .venv whose Python still runs and is the one that was asked for
	[ "$(cat "$venv/.packages" 2>/dev/null)" = "$packages" ] && "$venv/bin/python" -c '' 2>/dev/null &&
		{ [ -z "${PYTHON:-}" ] || [ "$(find_python)" = "$(cat "$venv/.python")" ]; }
}

if ready; then
	[ "$(cat "$venv/.project" 2>/dev/null)" = "$project" ] && exit 0
else
	python="$(find_python)"
	echo "setup: making $venv with $("$python" --version) from requirements-dev.lock (about a minute)"
	rm -f "$venv/.packages" "$venv/.project"
	"$python" -m venv --clear "$venv"
	"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	printf '%s\n' "$python" >"$venv/.python"
	printf '%s\n' "$packages" >"$venv/.packages"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
printf '%s\n' "$project" >"$venv/.project"
echo "setup: done, the command is $venv/bin/loopwatch"
