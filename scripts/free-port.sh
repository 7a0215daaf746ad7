# Sourced by the scripts that start servers.

# A port that nobody has, below those of outgoing connections: the same one is needed after every restart.
free_port() {
  local p
  for p in $(shuf -i 20000-29999 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo "$p"; return; }
  done
  return 1
}
