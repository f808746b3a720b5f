package diff

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
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

// loaderVariables returns the environment variables that make the dynamic loader, a shell or an interpreter
// load code. It includes variables such as PATH, which determine the programs that these start.
func loaderVariables() []string {
	return strings.Fields("LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GCONV_PATH PATH BASH_ENV ENV SHELLOPTS PROMPT_COMMAND PYTHONPATH PYTHONHOME PYTHONSTARTUP NODE_OPTIONS NODE_PATH " +
		"JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS CLASSPATH RUBYOPT RUBYLIB PERL5OPT PERL5LIB PERL5DB PHP_INI_SCAN_DIR LUA_INIT DOTNET_STARTUP_HOOKS CORECLR_PROFILER_PATH " +
		"GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_ASKPASS OPENSSL_CONF")
}

// trustVariables returns the environment variables that choose a proxy, an API server, trusted authorities,
// or an identity in a cloud.
func trustVariables() []string {
	return strings.Fields("HTTP_PROXY HTTPS_PROXY ALL_PROXY KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_MASTER KUBECONFIG SSL_CERT_FILE SSL_CERT_DIR " +
		"REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_NO_VERIFY GIT_SSL_CAINFO NODE_TLS_REJECT_UNAUTHORIZED PYTHONHTTPSVERIFY GODEBUG " +
		"AWS_ROLE_ARN AWS_WEB_IDENTITY_TOKEN_FILE AWS_ENDPOINT_URL AWS_CA_BUNDLE GOOGLE_APPLICATION_CREDENTIALS AZURE_CLIENT_ID AZURE_FEDERATED_TOKEN_FILE VAULT_ADDR VAULT_SKIP_VERIFY")
}

// variableReference matches a reference $(NAME), which the kubelet expands, and its escaped form $$(NAME).
var variableReference = regexp.MustCompile(`\$?\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`)

// executedCode returns the code that a container executes because of its settings. A key is the field with the
// code. For the content of a file, the key is the field and the path of the file. The code consists of:
//   - command lines with an interpreter, with the variables and files that the command line names
//   - command lines whose program is a variable or in a volume
//   - the variables in loaderVariables
//   - volumes that are mounted over directories of programs
//
// References $(NAME) are expanded. The files include those that are mounted from ConfigMaps and Secrets.
func (v *view) executedCode(namespace string, pod, ctr map[string]any) map[string]string {
	out := map[string]string{}
	env := v.environment(namespace, ctr)
	files := v.mountedFiles(namespace, pod, ctr)
	addFiles := func(field, paths string) {
		for _, f := range files.named(paths) {
			out[field+" "+f.at] = f.text
		}
	}
	for _, name := range env.names {
		if slices.Contains(loaderVariables(), name) {
			out["env."+name] = env.values[name]
			addFiles("env."+name, strings.ReplaceAll(env.values[name], ":", " "))
		}
	}
	add := func(field string, words []string) {
		expanded := make([]string, len(words))
		for i, word := range words {
			expanded[i] = env.expand(word)
		}
		text := strings.Join(expanded, " ")
		paths := text
		if dir := k8s.Text(ctr, "workingDir"); dir != "" {
			for _, word := range expanded {
				paths += " " + path.Join(dir, word)
			}
		}
		if isScript(expanded) {
			out[field] = text
			for _, name := range env.names {
				if !looksLikeImage(env.values[name]) && containsWord(text, name) {
					out[field] += "\n" + name + "=" + env.values[name]
				}
			}
			addFiles(field, paths)
			return
		}
		if len(words) > 0 && (strings.Contains(field, ".") || len(k8s.Texts(ctr, "command")) > 0) {
			addFiles(field, path.Join(k8s.Text(ctr, "workingDir"), expanded[0])+" "+expanded[0])
		}
		if len(words) > 0 && expanded[0] != words[0] || strings.Contains(field, ".") && !slices.Equal(words, expanded) {
			out[field] = text
		}
	}
	add("command", slices.Concat(k8s.Texts(ctr, "command"), k8s.Texts(ctr, "args")))
	for _, hook := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.preStop", "lifecycle.postStart"} {
		add(hook+".exec.command", k8s.Texts(ctr, strings.Split(hook+".exec.command", ".")...))
	}
	for _, f := range files {
		if isProgramDir(f.at) {
			out["volumeMounts "+f.at] = f.text
		}
	}
	return out
}

// environment is the environment of a container. names lists the variables in order.
type environment struct {
	names  []string
	values map[string]string
}

// environment returns the environment of a container. It looks up values from ConfigMaps in the state.
func (v *view) environment(namespace string, ctr map[string]any) environment {
	env := environment{values: map[string]string{}}
	set := func(name, value string) {
		if _, had := env.values[name]; !had {
			env.names = append(env.names, name)
		}
		env.values[name] = value
	}
	for _, from := range k8s.Items(ctr, "envFrom") {
		for field, kind := range map[string]string{"configMapRef": "ConfigMap", "secretRef": "Secret"} {
			content := v.keysOf(k8s.Key{Kind: kind, Namespace: namespace, Name: k8s.Text(from, field, "name")})
			for _, key := range sortedKeys(content) {
				set(k8s.Text(from, "prefix")+key, content[key])
			}
		}
	}
	for _, e := range k8s.Items(ctr, "env") {
		value := env.expand(k8s.Text(e, "value"))
		if from := k8s.Map(e, "valueFrom"); from != nil {
			value = formatValue(from)
			ref := k8s.Map(from, "configMapKeyRef")
			if text, known := v.keysOf(k8s.Key{Kind: "ConfigMap", Namespace: namespace, Name: k8s.Text(ref, "name")})[k8s.Text(ref, "key")]; known {
				value = text
			}
		}
		set(k8s.Text(e, "name"), value)
	}
	return env
}

// expand returns s with the references to variables replaced.
func (env environment) expand(s string) string {
	return variableReference.ReplaceAllStringFunc(s, func(ref string) string {
		value, known := env.values[strings.Trim(ref, "$()")]
		if !known || strings.HasPrefix(ref, "$$") {
			return ref
		}
		return value
	})
}

// keysOf returns the content of a ConfigMap or Secret of the state, by key. The values of a Secret are
// digests. It returns nil if the state does not contain the object.
func (v *view) keysOf(key k8s.Key) map[string]string {
	o := v.byKey[key]
	if o == nil {
		return nil
	}
	out := map[string]string{}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		for name, value := range k8s.TextMap(o.Content, field) {
			if key.Kind == "Secret" {
				if data, err := base64.StdEncoding.DecodeString(value); err == nil && field == "data" {
					value = string(data)
				}
				value = fmt.Sprintf("(of Secret %s, sha256 %x)", key.Name, sha256.Sum256([]byte(value)))
			}
			out[name] = value
		}
	}
	return out
}

// mountedFile is a file or directory of a volume in a container, with its content.
type mountedFile struct{ at, text string }

type mountedFiles []mountedFile

// mountedFiles returns the files in the volumes of a container. If the state does not have the content of a
// volume, it returns the mount path instead, with a description of the volume as the text.
func (v *view) mountedFiles(namespace string, pod, ctr map[string]any) mountedFiles {
	var out mountedFiles
	for _, m := range k8s.Items(ctr, "volumeMounts") {
		for _, volume := range k8s.Items(pod, "volumes") {
			if k8s.Text(volume, "name") != k8s.Text(m, "name") {
				continue
			}
			at, sub := path.Clean(k8s.Text(m, "mountPath")), path.Clean("/"+k8s.Text(m, "subPath"))
			inside := v.volumeFiles(namespace, volume)
			for _, name := range sortedKeys(inside) {
				if file := path.Clean("/" + name); isPathIn(file, sub) {
					out = append(out, mountedFile{path.Join(at, strings.TrimPrefix(file, sub)), inside[name]})
				}
			}
			if len(inside) == 0 {
				out = append(out, mountedFile{at, "volume " + formatValue(withoutFields(volume, "name"))})
			}
		}
	}
	return out
}

// volumeFiles returns the content of the files in a volume, by path. It omits files that the state lacks.
func (v *view) volumeFiles(namespace string, volume map[string]any) map[string]string {
	out := map[string]string{}
	for _, source := range append(k8s.Items(volume, "projected", "sources"), volume) {
		for field, kind := range map[string]string{"configMap": "ConfigMap", "secret": "Secret"} {
			ref := k8s.Map(source, field)
			content := v.keysOf(k8s.Key{Kind: kind, Namespace: namespace, Name: k8s.Text(ref, "name") + k8s.Text(ref, "secretName")})
			items := k8s.Items(ref, "items")
			for _, item := range items {
				if text, has := content[k8s.Text(item, "key")]; has {
					out[k8s.Text(item, "path")] = text
				}
			}
			if len(items) == 0 {
				maps.Copy(out, content)
			}
		}
	}
	return out
}

// filePath is an absolute path in a text.
var filePath = regexp.MustCompile(`/[^\s'"();|&<>=,:$` + "`" + `]*`)

// named returns the files whose path occurs in a text. A path in the text also selects the files above and
// below the path.
func (files mountedFiles) named(text string) mountedFiles {
	var paths []string
	for _, p := range filePath.FindAllString(text, -1) {
		if cut, is := strings.CutSuffix(p, "*"); is || strings.Contains(p, "*") {
			p = path.Dir(strings.Split(cut, "*")[0] + "x")
		}
		if p = path.Clean(p); p != "/" {
			paths = append(paths, p)
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(f mountedFile) bool {
		return !slices.ContainsFunc(paths, func(p string) bool { return isPathIn(f.at, p) || isPathIn(p, f.at) })
	})
}

// isProgramDir reports whether name is a directory or file in which the system looks up programs,
// libraries or startup scripts.
func isProgramDir(name string) bool {
	return slices.Contains([]string{"/usr", "/usr/local", "/etc"}, name) || slices.ContainsFunc(strings.Fields("/bin /sbin /lib /lib32 /lib64 /usr/bin /usr/sbin /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/local/bin /usr/local/sbin /usr/local/lib "+
		"/etc/ld.so.preload /etc/ld.so.conf /etc/ld.so.conf.d /etc/ld.so.cache /etc/profile /etc/profile.d /etc/bash.bashrc /etc/cron.d /etc/cron.daily /etc/crontab /etc/init.d /docker-entrypoint.d /docker-entrypoint-initdb.d"),
		func(dir string) bool { return isPathIn(name, dir) })
}

// isScript reports whether a command line has an interpreter, or an option such as -c that is followed
// by an argument of several words.
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

// containsWord reports whether a text contains a name as a whole word.
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

// compareCode reports added and changed code in the settings of a container. old is nil if the container
// is added.
func (d podDiff) compareCode(name string, old, now map[string]any, at fieldPath) {
	namespace := d.p.after.Key().Namespace
	was, is := d.c.before.executedCode(namespace, d.old, old), d.c.after.executedCode(namespace, d.now, now)
	for _, field := range sortedKeys(is) {
		if was[field] == is[field] {
			continue
		}
		setting, _, _ := strings.Cut(field, " ")
		in := at.field(strings.Split(setting, ".")...)
		if variable, ok := strings.CutPrefix(setting, "env."); ok {
			in = at.field("env").named(variable)
		}
		d.add("pods.code", name+" "+field, in, Finding{Before: was[field], After: is[field], Message: fmt.Sprintf("container %s executes changed code, set in %s", name, field), explains: noField()})
	}
	a, b := k8s.Texts(old, "command"), k8s.Texts(now, "command")
	isCode := slices.ContainsFunc(sortedKeys(is), func(field string) bool { return strings.HasPrefix(field, "command") })
	if old != nil && !isCode && len(b) > 0 && (len(a) == 0 || a[0] != b[0]) {
		f := Finding{Before: strings.Join(a, " "), After: strings.Join(b, " "), Message: fmt.Sprintf("container %s runs the program %s", name, b[0]), explains: noField()}
		d.add("pods.code", name+" command", at.field("command"), f, Medium)
	}
}

// compareReferencedCode reports code that unchanged pods execute from changed ConfigMaps and Secrets.
func compareReferencedCode(c *comparison) {
	changed, namespaces := map[k8s.Key]bool{}, map[string]bool{}
	for _, p := range c.changed {
		key := p.object().Key()
		changed[key] = true
		namespaces[key.Namespace] = namespaces[key.Namespace] || key.Is("ConfigMap", "Secret")
	}
	for _, o := range c.after.order {
		if !namespaces[o.Key().Namespace] || changed[o.Key()] {
			continue
		}
		for _, p := range podsOf(o) {
			d := podDiff{c: c, p: pair{c.before.byKey[o.Key()], o}, old: p.spec, now: p.spec, at: p.at}
			for _, list := range k8s.ContainerLists() {
				for _, ctr := range k8s.Items(p.spec, list) {
					name := k8s.Text(ctr, "name")
					d.compareCode(name, ctr, ctr, p.at.field(list).named(name))
				}
			}
		}
	}
}
