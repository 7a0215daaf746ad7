package pebblelog

const childEnv = "KCOORD_PEBBLELOG_CHILD"

func child() {}
