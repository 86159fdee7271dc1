#!/bin/sh
# Builds the reference etcd from the Go module registry into target/etcd-3.6.14/: etcd, etcdctl,
# etcdutl and etcd-dump-logs. The differential and end-to-end tests compare with it. What is there
# already is left alone.
set -eu

version=3.6.14
cd "$(dirname "$0")/.."
into="$PWD/target/etcd-$version"

missing=
for program in etcd etcdctl etcdutl etcd-dump-logs; do
    [ -x "$into/$program" ] || missing="$missing $program"
done
if [ -z "$missing" ]; then
    echo "etcd $version is in $into"
    exit 0
fi

if ! command -v go >/dev/null 2>&1; then
    echo "etcd $version is built with Go, and there is no 'go' in PATH:" >&2
    echo "install Go (https://go.dev/dl), or copy$missing of etcd $version into $into" >&2
    exit 1
fi

# An empty module that asks for etcd's commands; the registry's checksums are verified by Go.
module=$(mktemp -d)
trap 'rm -rf "$module"' EXIT
mkdir -p "$into"
cd "$module"
go mod init etcd-reference
go get "go.etcd.io/etcd/server/v3@v$version" "go.etcd.io/etcd/etcdctl/v3@v$version" \
    "go.etcd.io/etcd/etcdutl/v3@v$version" "go.etcd.io/etcd/v3@v$version"
for program in $missing; do
    case $program in
    etcd) package=go.etcd.io/etcd/server/v3 ;;
    etcd-dump-logs) package=go.etcd.io/etcd/v3/tools/etcd-dump-logs ;;
    *) package=go.etcd.io/etcd/$program/v3 ;;
    esac
    # Built beside, then renamed, so that an interrupted run leaves no half program.
    go build -o "$into/.$program.new" "$package"
    mv "$into/.$program.new" "$into/$program"
    echo "built $into/$program"
done
