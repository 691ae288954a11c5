#!/bin/sh
# Put `nca` on the PATH, from this folder: with uv or pipx where there is one, else in an environment of its own.
# NCA_EXTRA=local adds the runtime of the embedded model.
set -eu
cd "$(dirname "$0")/.."
what=".${NCA_EXTRA:+[$NCA_EXTRA]}"
if command -v uv >/dev/null; then
  uv tool install --quiet --force "$what"
  bin=$(uv tool dir --bin)
elif command -v pipx >/dev/null; then
  pipx install --quiet --force "$what"
  bin=$(pipx environment --value PIPX_BIN_DIR)
else
  home="${XDG_DATA_HOME:-$HOME/.local/share}/nca-program"
  bin="$HOME/.local/bin"
  "${PYTHON:-python3}" -m venv "$home"
  echo "Installing into $home ..."
  "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --upgrade "$what"
  mkdir -p "$bin"
  ln -sf "$home/bin/nca" "$bin/nca"
fi
echo "$("$bin/nca" --version) is installed: $bin/nca"
case ":$PATH:" in *":$bin:"*) ;; *) echo "Add $bin to your PATH to call it as nca." ;; esac
