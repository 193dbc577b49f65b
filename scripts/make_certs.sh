#!/bin/sh
# Makes a private CA and certificates for trying TLS out: one key pair for each
# NAME, good for servers and clients, valid for 30 days; the CA for ten years.
#
#   scripts/make_certs.sh DIR NAME[,HOST...]...
#
# HOST is a DNS name or an IP address under which the process is reached; every
# certificate is good for localhost, 127.0.0.1 and ::1, too. An existing CA in
# DIR is used again; existing key pairs are replaced. For example:
#
#   scripts/make_certs.sh certs node-0,node-0.nodes,10.0.0.5 worker ctl
#   farkv-memory-node --tls-ca=certs/ca.pem \
#       --tls-cert=certs/node-0.pem --tls-key=certs/node-0.key
set -eu

if [ $# -lt 2 ]; then
  echo "usage: scripts/make_certs.sh DIR NAME[,HOST...]..." >&2
  exit 2
fi
command -v openssl >/dev/null || {
  echo "make_certs: there is no openssl" >&2
  exit 1
}
dir=$1
shift
mkdir -p "$dir"
umask 077
days=30
if [ -e "$dir/ca.pem" ] && ! openssl x509 -checkend $((days * 86400)) -noout \
  -in "$dir/ca.pem" >/dev/null; then
  echo "make_certs: $dir/ca.pem ends within $days days: remove it and ca.key" >&2
  exit 1
fi

if [ ! -e "$dir/ca.key" ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -days 3650 -subj "/CN=FarKV test CA" \
    -addext "basicConstraints=critical,CA:TRUE" \
    -addext "keyUsage=critical,keyCertSign" \
    -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
fi

for entry in "$@"; do
  name=${entry%%,*}
  case $name in
    '' | *[!A-Za-z0-9._-]*)
      echo "make_certs: \"$name\" is no name of letters, digits, . _ -" >&2
      exit 2
      ;;
  esac
  san="DNS:$name,DNS:localhost,IP:127.0.0.1,IP:::1"
  for host in $(echo "$entry" | tr ',' ' '); do
    case $host in
      *:* | *[0-9].[0-9]*.[0-9]*.[0-9]*) san="$san,IP:$host" ;;
      "$name") ;;
      *) san="$san,DNS:$host" ;;
    esac
  done
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -subj "/CN=$name" -keyout "$dir/$name.key" -out "$dir/$name.csr" 2>/dev/null
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$san" \
    >"$dir/$name.ext"
  openssl x509 -req -in "$dir/$name.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" \
    -CAcreateserial -days "$days" -extfile "$dir/$name.ext" \
    -out "$dir/$name.pem" 2>/dev/null
  rm "$dir/$name.csr" "$dir/$name.ext"
  echo "$dir/$name.pem: $san"
done
