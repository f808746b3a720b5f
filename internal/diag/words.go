package diag

import (
	"fmt"
	"strconv"
	"strings"
)

// Count returns "1 hop" or "3 hops".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Some joins a list, or its first n items: "a, b and 3 more".
func Some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}

// Member returns the path of a member of the field at a path: "spec.catalogs".
func Member(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Item returns the path of an item of the field at a path: "spec.catalogs[0]".
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
