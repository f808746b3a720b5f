package diff

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// interpreters returns the programs that execute text: shells and languages.
func interpreters() []string {
	return strings.Fields("sh bash ash dash ksh zsh fish busybox python python2 python3 perl ruby node php lua pwsh powershell cmd tclsh gawk awk")
}

// loaderVariables returns the environment variables by which the dynamic loader, a shell or a language
// loads code, or finds the programs that it starts.
func loaderVariables() []string {
	return strings.Fields("LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GCONV_PATH PATH BASH_ENV ENV SHELLOPTS PROMPT_COMMAND PYTHONPATH PYTHONHOME PYTHONSTARTUP NODE_OPTIONS NODE_PATH " +
		"JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS CLASSPATH RUBYOPT RUBYLIB PERL5OPT PERL5LIB PERL5DB PHP_INI_SCAN_DIR LUA_INIT DOTNET_STARTUP_HOOKS CORECLR_PROFILER_PATH " +
		"GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_ASKPASS OPENSSL_CONF")
}

// variableReference is a reference to a variable that the kubelet expands, and its escaped form.
var variableReference = regexp.MustCompile(`\$?\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`)

// executedCode returns the code in the settings of a container, by field: command lines with an
// interpreter, with the variables that they name, other command lines whose program is a variable, and
// variables for the loader. References $(NAME) are expanded.
func executedCode(ctr map[string]any) map[string]string {
	out, env, names := map[string]string{}, map[string]string{}, []string{}
	expand := func(s string) string {
		return variableReference.ReplaceAllStringFunc(s, func(ref string) string {
			value, known := env[strings.Trim(ref, "$()")]
			if !known || strings.HasPrefix(ref, "$$") {
				return ref
			}
			return value
		})
	}
	for _, e := range k8s.Items(ctr, "env") {
		name, value := k8s.Text(e, "name"), expand(k8s.Text(e, "value"))
		if from := e["valueFrom"]; from != nil {
			value = formatValue(from)
		}
		env[name], names = value, append(names, name)
		if slices.Contains(loaderVariables(), name) {
			out["env."+name] = value
		}
	}
	add := func(field string, words []string) {
		expanded := make([]string, len(words))
		for i, word := range words {
			expanded[i] = expand(word)
		}
		text := strings.Join(expanded, " ")
		if isScript(expanded) {
			out[field] = text
			for _, name := range names {
				if !looksLikeImage(env[name]) && containsWord(text, name) {
					out[field] += "\n" + name + "=" + env[name]
				}
			}
		} else if len(words) > 0 && expanded[0] != words[0] || strings.Contains(field, ".") && !slices.Equal(words, expanded) {
			out[field] = text
		}
	}
	add("command", slices.Concat(k8s.Texts(ctr, "command"), k8s.Texts(ctr, "args")))
	for _, hook := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.preStop", "lifecycle.postStart"} {
		add(hook+".exec.command", k8s.Texts(ctr, strings.Split(hook+".exec.command", ".")...))
	}
	return out
}

// isScript reports whether a command line has an interpreter, or an option for code with more than one
// word after it.
func isScript(words []string) bool {
	for i, word := range words {
		if slices.Contains(interpreters(), path.Base(word)) {
			return true
		}
		isOption := strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && len(word) <= 4 && strings.ContainsAny(word[len(word)-1:], "ce")
		if isOption && i+1 < len(words) && strings.ContainsAny(strings.TrimSpace(words[i+1]), " \n\t;|&`") {
			return true
		}
	}
	return false
}

// containsWord reports whether a name is in a text, and not only as a part of a longer name.
func containsWord(text, name string) bool {
	isPart := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for from := 0; name != ""; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !isPart(text[start-1])) && (end == len(text) || !isPart(text[end])) {
			return true
		}
		from = end
	}
	return false
}

// compareCode reports code in the settings of a container that is added or changed. old is nil if the
// container is added.
func (d podDiff) compareCode(name string, old, now map[string]any, at fieldPath) {
	was, is := executedCode(old), executedCode(now)
	for _, field := range sortedKeys(is) {
		if was[field] == is[field] {
			continue
		}
		in := at.field(strings.Split(field, ".")...)
		if variable, ok := strings.CutPrefix(field, "env."); ok {
			in = at.field("env").named(variable)
		}
		d.add("pods.code", name+" "+field, in, Finding{Before: was[field], After: is[field], Message: fmt.Sprintf("container %s executes other code, by %s", name, field), explains: noField()})
	}
}
