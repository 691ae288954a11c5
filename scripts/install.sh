#!/bin/sh
# Put `nca` on the PATH, from this folder: with uv or pipx where there is one, else in an environment of its own.
# NCA_EXTRA=local adds the runtime of the embedded model.
set -eu
cd "$(dirname "$0")/.."
what=".${NCA_EXTRA:+[$NCA_EXTRA]}"
says() { echo "Installing nca $1: some 100 packages, 310 MB; a minute or two ..."; }
if command -v uv >/dev/null; then
  says "with uv"
  uv tool install --quiet --force "$what"
  bin=$(uv tool dir --bin)
  remove="uv tool uninstall nca"
elif command -v pipx >/dev/null; then
  says "with pipx"
  pipx install --quiet --force "$what"
  bin=$(pipx environment --value PIPX_BIN_DIR)
  remove="pipx uninstall nca"
else
  home="${XDG_DATA_HOME:-$HOME/.local/share}/nca-program"
  bin="$HOME/.local/bin"
  says "into $home"
  "${PYTHON:-python3}" -m venv "$home"
  "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --upgrade "$what"
  mkdir -p "$bin"
  ln -sf "$home/bin/nca" "$bin/nca"
  remove="rm -r '$home' '$bin/nca'"
fi
echo "$("$bin/nca" --version) is installed: $bin/nca"
echo "To remove it: $remove; your sessions and settings stay."
case ":$PATH:" in *":$bin:"*) ;; *) echo "Add $bin to your PATH to call it as nca." ;; esac
