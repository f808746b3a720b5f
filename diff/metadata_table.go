package diff

// metadataReader is a group of programs that annotations and labels control.
type metadataReader struct {
	program  string   // such as "Argo CD", for the message
	domains  string   // domains of the keys, with their subdomains, separated by spaces
	keys     string   // patterns of other keys, separated by spaces
	effect   string   // effect of a key, for the message
	severity Severity // severity of an added, changed or removed entry
	engine   bool     // whether it applies and deletes objects: critical on objects whose deletion loses data
}

// metadataTable returns the readers. The first row that matches a key applies. A key without a row has no
// known reader.
func metadataTable() []metadataReader {
	return append([]metadataReader{
		{"Kubernetes and operators that aggregate roles", "", "*aggregate-to-*", "rules rbac.* compare the resulting permissions", Info, false},
		// Keys that only affect order, time or display.
		{"Argo CD", "", "argocd.argoproj.io/manifest-generate-paths argocd.argoproj.io/sync-wave argocd.argoproj.io/refresh argocd.argoproj.io/compare-options", "when it compares and applies the object", Low, false},
		{"quayside", "", "quayside.dev/stage quayside.dev/environment quayside.dev/crds", "which part of the tree applies the object", Low, false},
		{"OpenShift", "", "openshift.io/display-name openshift.io/description service.beta.openshift.io/serving-cert-secret-name service.alpha.openshift.io/serving-cert-secret-name config.openshift.io/inject-trusted-cabundle", "names, and certificates of the cluster's own CA", Low, false},
		{"OpenShift's monitoring", "", "openshift.io/cluster-monitoring", "the cluster's own Prometheus reads the ServiceMonitors in the namespace", Medium, false},
		{"Istio's operator", "install.operator.istio.io operator.istio.io", "", "which objects it prunes", Medium, false},
		{"node feature discovery and schedulers", "", "nvidia.com/gpu.* feature.node.kubernetes.io/* node.kubernetes.io/*", "on which nodes pods run", Low, false},
	}, append(engineReaders(), programReaders()...)...)
}

// engineReaders returns the programs that apply, replace and delete whole objects.
func engineReaders() []metadataReader {
	return []metadataReader{
		{"Argo CD", "argoproj.io", instanceLabel, "it can replace or delete the object, or apply it as a hook", High, true},
		{"Flux", "fluxcd.io", "", "it can recreate the object, or no longer reconcile it", High, true},
		{"Helm and Argo CD", "", "helm.sh/hook* helm.sh/resource-policy", "the object becomes a hook, or is kept", High, true},
		{"kustomize, kapp and kubectl", "config.kubernetes.io config.k8s.io kapp.k14s.io applyset.kubernetes.io cli-utils.sigs.k8s.io", "kubectl.kubernetes.io/last-applied-configuration", "the object is applied differently, or deleted", High, true},
		{"quayside", "quayside.dev", "", "the object belongs to another operator, or is applied in another stage", High, true},
		{"Rancher", "cattle.io", "", "it applies or deletes the object, or gives a project access to a namespace", High, true},
		{"Open Cluster Management, Karmada and other fleet managers", "open-cluster-management.io karmada.io kubefed.io projectsveltos.io liqo.io clusternet.io multicluster.x-k8s.io toolkit.sveltos.io", "", "the object is copied to clusters, or deleted", High, true},
		{"Config Sync and Config Connector", "configsync.gke.io configmanagement.gke.io client.lifecycle.config.k8s.io cnrm.cloud.google.com", "", "the object is applied, abandoned or deleted", High, true},
		{"the add-on manager", "addons.k8s.io", "addonmanager.kubernetes.io/* kubernetes.io/cluster-service", "it reconciles or deletes the object", High, true},
		{"the OpenShift release operator", "release.openshift.io", "", "it applies, owns or deletes the object", High, true},
		{"OLM", "operators.coreos.com operatorframework.io olm.operatorframework.io", "olm.owner* olm.managed olm.copiedfrom olm.catalogsource", "it owns, upgrades or deletes the object", High, true},
		{"Crossplane", "crossplane.io", "", "it adopts or pauses the external resource", High, true},
		{"programs that delete objects", "hnc.x-k8s.io capsule.clastix.io toolkit.kubesphere.io werf.io", "cleanup.kyverno.io/* janitor/* downscaler/* kube-janitor* ttl.*/* */ttl *deletion-policy* *delete-after* *expires*", "the object is deleted, scaled down, or copied to other namespaces", High, true},
		{"Cluster API and the machine operators", "cluster.x-k8s.io machine.openshift.io machineconfiguration.openshift.io upgrade.cattle.io k0sproject.io", "", "machines are paused, reconfigured or deleted", High, true},
		{"storage controllers", "cdi.kubevirt.io volume.kubernetes.io volume.beta.kubernetes.io pv.kubernetes.io snapshot.storage.kubernetes.io storageclass.kubernetes.io storageclass.beta.kubernetes.io csi.storage.k8s.io populator.storage.k8s.io volsync.backube", "", "volumes are bound, filled, or provisioned by default from another class", High, true},
		{"backup programs", "velero.io k8up.io k8up.syn.tools stash.appscode.com kanister.io kasten.io cloudcasa.io trilio.io", "", "commands run in the pod, and data is copied or restored", High, true},
	}
}

// programReaders returns the programs that change the running code, its identity or its clients.
func programReaders() []metadataReader {
	return []metadataReader{
		{"Kubernetes", "enforce-mountable-secrets.kubernetes.io rbac.authorization.kubernetes.io", "kubernetes.io/service-account.* kubernetes.io/enforce-mountable-secrets kubernetes.io/config.* kubernetes.io/bootstrapping kubernetes.io/tls-acme", "tokens, permissions and static pods depend on it", High, false},
		{"the kubelet and the scheduler", "", "container.apparmor.security.beta.kubernetes.io/* seccomp.security.alpha.kubernetes.io/* security.alpha.kubernetes.io/* scheduler.alpha.kubernetes.io/* pod.kubernetes.io/* node-role.kubernetes.io/* node-restriction.kubernetes.io/* resize.alpha.kubernetes.io/*", "isolation from the node, and the choice of nodes", High, false},
		{
			"container runtimes and device plugins", "cdi.k8s.io crio.io cri-o.io kubernetes.cri-o.io nri.io noderesource.dev katacontainers.io gvisor.dev hami.io nvidia.com amd.com habana.ai smarter-devices intel.com resource.kubernetes.io volcano.sh",
			"io.kubernetes.cri* io.kubernetes.cri-o.* io.katacontainers.* io.containerd.* io.crun.* run.oci.* org.systemd.* dev.gvisor.* org.opencontainers.runtime* *userns-mode", "devices, mounts, hooks and properties of the container on the node", High, false,
		},
		{
			"networks of pods", "cni.cncf.io ovn.org cilium.io projectcalico.org multus-cni.io antrea.io kubeovn.io netnamespace.network.openshift.io network.openshift.io sriovnetwork.openshift.io submariner.io",
			"k8s.v1.cni.cncf.io/* v1.multus-cni.io/* k8s.ovn.org/* ovn.kubernetes.io/* io.cilium* cni.projectcalico.org/* kubernetes.io/ingress-bandwidth kubernetes.io/egress-bandwidth", "the pod joins other networks, or leaves policies", High, false,
		},
		{"OpenShift", "security.openshift.io sa.scc.openshift.io", "openshift.io/* security.openshift.io/* openshift.io/sa.scc.* authorization.openshift.io/* oauth.openshift.io/*", "the security context constraints of pods, their nodes, and logins", High, false},
		{"policies and admission", "gatekeeper.sh kyverno.io kubewarden.io policy.sigstore.dev kubearmor.io falco.org neuvector.com opa.kubernetes.io pod-policy.io crowdstrike.com stackrox.io rhacs.redhat.com", "*webhooks.*ignore* admission.*/* *admission-control*", "protections are switched off", High, false},
		{
			"certificate and secret injectors", "cert-manager.io acme.cert-manager.io trust.cert-manager.io vault.hashicorp.com vault.security.banzaicloud.io doppler.com infisical.com akeyless.io conjur.org cyberark.com 1password.com external-secrets.io sealedsecrets.bitnami.com secretgen.carvel.dev avp.kubernetes.io kubed.appscode.com replicator.v1.mittwald.de reflector.v1.k8s.emberstack.com secrets-store.csi.x-k8s.io berglas.io kamus.soluto.io csi.cert-manager.io",
			"service.beta.openshift.io/* service.alpha.openshift.io/* config.openshift.io/inject-* *replicate* *reflect* *copy-to* *vault* *secret-store*", "what is trusted, and where Secrets are copied", High, false,
		},
		{
			"service meshes and sidecar injectors", "istio.io linkerd.io consul.hashicorp.com kuma.io openservicemesh.io appmesh.k8s.aws dapr.io traefik.mesh sidecar.opentelemetry.io instrumentation.opentelemetry.io jaegertracing.io dynatrace.com oneagent.dynatrace.com admission.datadoghq.com appdynamics.com newrelic.com meshery.io",
			"istio-injection openservicemesh.io* *inject *inject-* */inject* *injection* *injector*", "another container runs in the pod, or its traffic takes another way", High, false,
		},
		{
			"cloud identities", "eks.amazonaws.com iam.amazonaws.com iam.gke.io azure.workload.identity azure.com pod-identity.alibabacloud.com ram.alibabacloud.com workload-identity.io spiffe.io spire.io aws.amazon.com",
			"aadpodidbinding* *role-arn* *iam-role* *service-account-email* *workload-identity* *client-id* */gcp-service-account", "the pod gets permissions in the cloud account", High, false,
		},
		{
			"ingress controllers", "nginx.ingress.kubernetes.io nginx.org nginx.com appprotect.f5.com f5.com traefik.ingress.kubernetes.io traefik.io haproxy.org haproxy.com haproxy-ingress.github.io ingress.kubernetes.io haproxy.router.openshift.io router.openshift.io alb.ingress.kubernetes.io ingress.gcp.kubernetes.io konghq.com getambassador.io projectcontour.io apisix.apache.org k8s.apisix.apache.org voyager.appscode.com appgw.ingress.kubernetes.io higress.io skipper.zalando.org",
			"kubernetes.io/ingress.class ingressclass.kubernetes.io/* kubernetes.io/ingress.* ingress.*/* zalando.org/* *snippet*", "the controller's configuration, which is shared with other tenants", High, false,
		},
		{
			"load balancers and DNS", "external-dns.alpha.kubernetes.io external-dns.kubernetes.io metallb.io metallb.universe.tf kube-vip.io lbipam.cilium.io tailscale.com cloud.google.com load-balancer.hetzner.cloud openelb.io porter.kubesphere.io cloudflare.com ngrok.com",
			"service.beta.kubernetes.io/* service.kubernetes.io/* service.alpha.kubernetes.io/* networking.gke.io/* kubernetes.io/service-name endpointslice.kubernetes.io/* endpoints.kubernetes.io/* *load-balancer* *loadbalancer* dns.*/*", "a Service is reachable from elsewhere, or gets other traffic", High, false,
		},
		{"programs that change workloads", "keel.sh image-updater kured.dev kubevirt.io hooks.kubevirt.io autoscaling.knative.dev serving.knative.dev vpa.k8s.io goldilocks.fairwinds.com karpenter.sh litmuschaos.io chaos-mesh.org chaosmesh.org", "strimzi.io/* *auto-update* *autoupdate* *image-update* *jsonpatch* *json-patch* *chaos*", "images, containers or settings of the pod are changed", High, false},
		{"Helm", "meta.helm.sh", "", "a release may adopt the object", Medium, false},
		{"reloaders", "reloader.stakater.com stakater.com wave.pusher.com wave.ubercloud.com", "", "the pods restart when another object changes", Medium, false},
		{"programs that run commands", "", "*/command* *-command* */exec* *-exec *-exec-* */script* *-script* */hook* *-hook* *privileged* *run-as* *bypass* *allow-all* *skip-verify*", "the name suggests a command or an exemption", Medium, false},
	}
}
